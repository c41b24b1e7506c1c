#[distributed_lock(key = "k", min_hold = "30s", wait, on_busy = skip)]
async fn hardly_meant() {}
// ---------------------------------------- becomes
async fn hardly_meant() {
    use::lockable_runtime::__private as __lockable;
     {
        #[deprecated = "`min_hold` is longer than a lease of 10 s, which is the default, and then every call fails; write `expire` too, at least as long"]const MIN_HOLD_ALONE:()= ();
        MIN_HOLD_ALONE
    }
     {
        #[deprecated = "a call that waits without a limit never finds the lock busy; write a limit, such as `wait = \"3s\"`, or leave `on_busy` out"]const IDLE_ON_BUSY:()= ();
        IDLE_ON_BUSY
    }
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("k", ::core::concat!(::core::module_path!(), "::hardly_meant"));
        &LABEL
    }
    , ::core::format_args!("k"));
    call.options.wait = __lockable::Wait::Forever;
    call.options.min_hold = ::core::option::Option::Some(::core::time::Duration::from_millis(30000u64));
    let body = async move {
        if false {
            return __lockable::absent::<()> ();
        }
         {
        }
    }
    ;
    let error = match __lockable::run(call, body).await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)if error.is_busy()||error.is_wait_limit_reached()=> return __lockable::Skip::skipped(&error), ::core::result::Result::Err(error)=> error,
    }
    ;
    <()as __lockable::RefusedBesideOnBusy> ::refused(error)
}
