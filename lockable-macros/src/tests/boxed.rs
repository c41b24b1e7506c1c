#[distributed_lock(key = "order:{id}", on_busy = Some(id))]
fn settle<'a>(&'a self, id: u64) -> ::core::pin::Pin<Box<dyn Future<Output = Option<u64>> + Send + 'a>> { Box::pin(async move { self.charge(id).await }) }
// ---------------------------------------- becomes
fn settle <'a> (&'a self, id:u64)-> ::core::pin::Pin <Box <dyn Future <Output = Option <u64>> +Send+'a>>  {
    ::std::boxed::Box::pin(async move {
        let call = ::lockable_runtime::__private::Call::new( {
            static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("order:{id}", ::core::concat!(::core::module_path!(), "::settle"));
            &LABEL
        }
        , ::core::format_args!("order:{id}", id = ::lockable_runtime::__private::Part::new(&id, "")));
        let cell = ::lockable_runtime::__private::LeaseCell::default();
        let body =  {
            let cell = ::core::clone::Clone::clone(&cell);
            async move {
                ::lockable_runtime::__private::start(move |lease:::core::option::Option <::lockable_runtime::__private::Lease> | {
                    if false {
                        return::lockable_runtime::__private::absent::<::core::pin::Pin <Box <dyn Future <Output = Option <u64> > +Send+'a> > > ();
                    }
                    let _= (&id, &self, );
                    match lease {
                        ::core::option::Option::None => ::std::boxed::Box::pin(async move {
                            Some(id)
                        }
                        ), ::core::option::Option::Some(_)=>  {
                            Box::pin(async move {
                                self.charge(id).await
                            }
                            )
                        }
                    }
                }
                , cell.outcome().await).await
            }
        }
        ;
        let error = match::lockable_runtime::__private::run(call, body).lease_into(cell).even_when_busy().await {
            ::core::result::Result::Ok(value)=>  {
                return value;
            }
            ::core::result::Result::Err(error)=> error,
        }
        ;
        <Option <u64> as::lockable_runtime::__private::RefusedBesideOnBusy> ::refused(error)
    }
    )
}
