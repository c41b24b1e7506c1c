#[distributed_lock(key = "a", on_busy = Reply::busy(&id), on_error = |err: LockError| Reply::from(err), guard = lock)]
async fn answer(id: String, _permit: Permit) -> Reply { Reply::ok(id, lock) }
// ---------------------------------------- becomes
async fn answer(id:String, _permit:Permit)-> Reply {
    let call = ::lockable_runtime::__private::Call::new("a", ::core::format_args!("a"));
    #[allow (clippy :: async_yields_async)]let body = ::lockable_runtime::__private::Body::new(move |granted:::core::option::Option <::lockable_runtime::__private::Lease> |async move {
        if let::core::option::Option::Some(value)= ::core::option::Option::None::<Reply>  {
            return value;
        }
        #[allow (clippy :: used_underscore_binding)]let _= (&_permit, &id, );
        match granted {
            ::core::option::Option::None => Reply::busy(&id), ::core::option::Option::Some(lock)=>  {
                Reply::ok(id, lock)
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
    let err:LockError = error;
    Reply::from(err)
}
