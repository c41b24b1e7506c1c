#[distributed_lock(key = "a", wait, once = "1h", on_error = |err| -> Option<u8> { log(err) })]
async fn only() -> Option<u8> { Some(1) }
// ---------------------------------------- becomes
async fn only()-> Option <u8>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("a", ::core::concat!(::core::module_path!(), "::only"));
        &LABEL
    }
    , ::core::format_args!("a"));
    call.options.wait = __lockable::Wait::Forever;
    call.options.once = ::core::option::Option::Some(__lockable::Once::For(::core::time::Duration::from_millis(3600000u64)));
    let body = async move {
        if false {
            return __lockable::absent::<Option <u8> > ();
        }
         {
            Some(1)
        }
    }
    ;
    let error = match __lockable::run(call, body).once().await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)if error.is_busy()||error.is_wait_limit_reached()=> return <Option <u8> as __lockable::RefusedBesideOnError> ::refused(error), ::core::result::Result::Err(error)=> error,
    }
    ;
    let err = error;
    let value:Option <u8> =  {
        log(err)
    }
    ;
    value
}
