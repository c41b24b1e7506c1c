#[distributed_lock(key = "a", on_lost = cancel)]
async fn work() { step().await }
// ---------------------------------------- becomes
async fn work() {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("a", ::core::concat!(::core::module_path!(), "::work"));
        &LABEL
    }
    , ::core::format_args!("a"));
    let body = async move {
        if false {
            return::lockable_runtime::__private::absent::<()> ();
        }
         {
            step().await
        }
    }
    ;
    ::lockable_runtime::__private::value::<()> (::lockable_runtime::__private::run(call, body).await)
}
