#[distributed_lock(key = "nightly")]
async fn report() { work().await }
// ---------------------------------------- becomes
async fn report() {
    let call = ::lockable_runtime::__private::Call::new("nightly", ::core::format_args!("nightly"));
    let body = async move {
        if false {
            return::lockable_runtime::__private::absent::<()> ();
        }
         {
            work().await
        }
    }
    ;
    ::lockable_runtime::__private::value::<()> (::lockable_runtime::__private::run(call, body).await)
}
