#[distributed_lock(key = "order:{id}", on_busy = Some(id))]
fn settle<'a>(&'a self, id: u64) -> ::core::pin::Pin<Box<dyn Future<Output = Option<u64>> + Send + 'a>> { Box::pin(async move { self.charge(id).await }) }
// ---------------------------------------- becomes
fn settle <'a> (&'a self, id:u64)-> ::core::pin::Pin <Box <dyn Future <Output = Option <u64>> +Send+'a>>  {
    ::std::boxed::Box::pin(async move {
        use::lockable_runtime::__private as __lockable;
        let call = __lockable::Call::new( {
            static LABEL:__lockable::Label = __lockable::Label::new("order:{id}", ::core::concat!(::core::module_path!(), "::settle"));
            &LABEL
        }
        , ::core::format_args!("order:{id}", id = __lockable::Part::new(&id, "")));
        let cell = __lockable::LeaseCell::default();
        let body =  {
            let cell = ::core::clone::Clone::clone(&cell);
            async move {
                __lockable::start(move |lease:::core::option::Option <__lockable::Lease> | {
                    if false {
                        return __lockable::absent::<::core::pin::Pin <Box <dyn Future <Output = Option <u64> > +Send+'a> > > ();
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
        let error = match __lockable::run(call, body).lease_into(cell).even_when_busy().await {
            ::core::result::Result::Ok(value)=>  {
                return value;
            }
            ::core::result::Result::Err(error)=> error,
        }
        ;
        <Option <u64> as __lockable::RefusedBesideOnBusy> ::refused(error)
    }
    )
}
