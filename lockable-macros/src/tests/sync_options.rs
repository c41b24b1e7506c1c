#[distributed_lock(key = "a", on_lost = finish, renew, wait, blocking)]
fn work() -> Option<u8> { Some(1) }
// ---------------------------------------- becomes
fn work()-> Option <u8>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("a", ::core::concat!(::core::module_path!(), "::work"));
        &LABEL
    }
    , ::core::format_args!("a"));
    call.options.wait = __lockable::Wait::Forever;
    call.blocking = true;
    call.options.renew = true;
    call.options.on_lost = __lockable::OnLost::Finish;
    let error = match __lockable::run_blocking(call, move |_:__lockable::Lease | {
        if false {
            return __lockable::absent::<Option <u8> > ();
        }
         {
            Some(1)
        }
    }
    ) {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <Option <u8> as __lockable::Refused> ::refused(error)
}
