#[distributed_lock(key = "nightly")]
async fn report() { work().await }
// ---------------------------------------- becomes
async fn report() {
    let call = ::lockable_runtime::__private::Call::new("nightly", ::core::format_args!("nightly"));
    let body = ::lockable_runtime::__private::Body::new(move |_:::lockable_runtime::__private::Lease |async move {
        if let::core::option::Option::Some(value)= ::core::option::Option::None::<()>  {
            return value;
        }
         {
            work().await
        }
    }
    );
    let error = match call.acquire().await {
        ::core::result::Result::Ok(guard)=>  {
            let body = ::core::pin::pin!(::core::option::Option::Some(body.start(guard.lease())));
            match::lockable_runtime::__private::hold(guard, body).await {
                ::core::result::Result::Ok(value)=>  {
                    return value;
                }
                ::core::result::Result::Err(error)=> error,
            }
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <()as::lockable_runtime::__private::Refused> ::refused(error)
}
