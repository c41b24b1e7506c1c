#[distributed_lock(key = "nightly")]
async fn report() { work().await }
// ---------------------------------------- becomes
async fn report() {
    let call = ::lockable_runtime::__private::Call::new("nightly", ::core::format_args!("nightly"));
    let body = async move {
        if let::core::option::Option::Some(value)= ::core::option::Option::None::<()>  {
            return value;
        }
         {
            work().await
        }
    }
    ;
    let error = match::lockable_runtime::__private::run(call, body).await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <()as::lockable_runtime::__private::Refused> ::refused(error)
}
