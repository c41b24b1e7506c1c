#[distributed_lock(key = "k", wait = forever)]
async fn waits(forever: Duration) { work().await }
// ---------------------------------------- becomes
async fn waits(forever:Duration) {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("k", ::core::concat!(::core::module_path!(), "::waits"));
        &LABEL
    }
    , ::core::format_args!("k"));
    call.options.wait = __lockable::Wait::AtMost(__lockable::IntoWait::into_wait(forever));
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
