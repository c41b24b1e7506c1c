#[distributed_lock(key = "report", once = PERIOD, on_busy = skip, guard = lock)]
fn report() -> Option<u8> { write(lock) }
// ---------------------------------------- becomes
fn report()-> Option <u8>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("report", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("report"));
    call.options.once = ::core::option::Option::Some(__lockable::Once::For(__lockable::IntoHold::into_hold(PERIOD)));
    let error = match __lockable::run_blocking(call, __lockable::once(move |lock:__lockable::Lease | {
        if false {
            return __lockable::absent::<Option <u8> > ();
        }
         {
            write(lock)
        }
    }
    , __lockable::EndsWell::ended_well)) {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)if error.is_busy()=> return __lockable::Skip::skipped(&error), ::core::result::Result::Err(error)=> error,
    }
    ;
    <Option <u8> as __lockable::RefusedBesideOnBusy> ::refused(error)
}
