#[distributed_lock(key = "k:{id}")]
async fn f(id: u32, #[cfg(feature = "trace")] trace: Trace, _permit: Permit) { g(id, trace).await }
// ---------------------------------------- becomes
async fn f(id:u32, #[cfg (feature = "trace")]trace:Trace, _permit:Permit) {
    use::lockable_runtime::__private as __lockable;
    let call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("k:{id}", ::core::concat!(::core::module_path!(), "::f"));
        &LABEL
    }
    , ::core::format_args!("k:{id}", id = __lockable::Part::new(&id, "")));
    let body = async move {
        if false {
            return __lockable::absent::<()> ();
        }
        #[allow (clippy :: used_underscore_binding)]let _= (&_permit, &id, );
         {
            g(id, trace).await
        }
    }
    ;
    __lockable::value::<()> (__lockable::run(call, body).await)
}
