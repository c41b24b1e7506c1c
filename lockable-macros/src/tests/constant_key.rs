#[distributed_lock(key = "nightly")]
async fn report() { work().await }
// ---------------------------------------- becomes
async fn report() {
    use::lockable_runtime::__private as __lockable;
    let call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("nightly", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("nightly"));
    let body = async move {
        if false {
            return __lockable::absent::<()> ();
        }
         {
            work().await
        }
    }
    ;
    __lockable::value::<()> (__lockable::run(call, body).await)
}
