#[distributed_lock(key = "order:{id}", on_busy = Some(id))]
fn settle<'a>(&'a self, id: u64) -> ::core::pin::Pin<Box<dyn Future<Output = Option<u64>> + Send + 'a>> { Box::pin(async move { self.charge(id).await }) }
// ---------------------------------------- becomes
fn settle <'a> (&'a self, id:u64)-> ::core::pin::Pin <Box <dyn Future <Output = Option <u64>> +Send+'a>>  {
    ::std::boxed::Box::pin(async move {
        let call = ::lockable_runtime::__private::Call::new("order:{id}", ::core::format_args!("order:{id}", id = ::lockable_runtime::__private::Part::new(&id, "")));
        let body = ::lockable_runtime::__private::Body::new(move |granted:::core::option::Option <::lockable_runtime::__private::Lease> | {
            if let::core::option::Option::Some(value)= ::core::option::Option::None::<::core::pin::Pin <Box <dyn Future <Output = Option <u64> > +Send+'a> > >  {
                return value;
            }
            let _= (&id, &self, );
            match granted {
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
        );
        let error = match call.acquire().await {
            ::core::result::Result::Ok(guard)=>  {
                let body = ::core::pin::pin!(::core::option::Option::Some(body.start(::core::option::Option::Some(guard.lease()))));
                match::lockable_runtime::__private::hold(guard, body).await {
                    ::core::result::Result::Ok(value)=>  {
                        return value;
                    }
                    ::core::result::Result::Err(error)=> error,
                }
            }
            ::core::result::Result::Err(error)if error.is_contended()=> return::core::pin::pin!(body.start(::core::option::Option::None)).await, ::core::result::Result::Err(error)=> error,
        }
        ;
        <Option <u64> as::lockable_runtime::__private::Refused> ::refused(error)
    }
    )
}
