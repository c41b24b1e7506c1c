#[distributed_lock(key = "a", on_busy = Reply::busy(&id), on_error = |err: LockError| Reply::from(err), guard = lock)]
async fn answer(id: String, _permit: Permit) -> Reply { Reply::ok(id, lock) }
// ---------------------------------------- becomes
async fn answer(id:String, _permit:Permit)-> Reply {
    use::lockable_runtime::__private as __lockable;
    let call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("a", ::core::concat!(::core::module_path!(), "::answer"));
        &LABEL
    }
    , ::core::format_args!("a"));
    let cell = __lockable::LeaseCell::default();
    let body =  {
        let cell = ::core::clone::Clone::clone(&cell);
        async move {
            if false {
                return __lockable::absent::<Reply> ();
            }
            #[allow (clippy :: used_underscore_binding)]let _= (&_permit, &id, );
            match cell.outcome().await {
                ::core::option::Option::None => Reply::busy(&id), ::core::option::Option::Some(lock)=>  {
                    Reply::ok(id, lock)
                }
            }
        }
    }
    ;
    let error = match __lockable::run(call, body).lease_into(cell).even_when_busy().await {
        ::core::result::Result::Ok(value)=>  {
             {
                use __lockable::Late as _;
                __lockable::Returned::new(&value).check();
            }
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    let err:LockError = error;
    Reply::from(err)
}
