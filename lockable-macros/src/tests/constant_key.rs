#[distributed_lock(key = "nightly")]
async fn report() { work().await }
// ---------------------------------------- becomes
async fn report() {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("nightly", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("nightly"));
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
