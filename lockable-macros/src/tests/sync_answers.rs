#[distributed_lock(key = "a", on_busy = Reply::busy(&id), on_error = |err| Reply::from(err))]
fn answer(id: String) -> Reply { Reply::ok(id) }
// ---------------------------------------- becomes
fn answer(id:String)-> Reply {
    let call = ::lockable_runtime::__private::Call::new("a", ::core::format_args!("a"));
    let body = ::lockable_runtime::__private::Body::new(move |granted:::core::option::Option <::lockable_runtime::__private::Lease> | {
        if let::core::option::Option::Some(value)= ::core::option::Option::None::<Reply>  {
            return value;
        }
        let _= (&id, );
        match granted {
            ::core::option::Option::None => Reply::busy(&id), ::core::option::Option::Some(_)=>  {
                Reply::ok(id)
            }
        }
    }
    );
    let error = match call.acquire_blocking() {
        ::core::result::Result::Ok(guard)=>  {
            let granted = ::core::option::Option::Some(guard.lease());
            let body = move ||body.start(granted);
            match::lockable_runtime::__private::hold_blocking(guard, body) {
                ::core::result::Result::Ok(value)=>  {
                    ::lockable_runtime::__private::Returned::new(&value).is_no_future();
                    return value;
                }
                ::core::result::Result::Err(error)=> error,
            }
        }
        ::core::result::Result::Err(error)if error.is_contended()=> return body.start(::core::option::Option::None), ::core::result::Result::Err(error)=> error,
    }
    ;
    let err = error;
    Reply::from(err)
}
