#[distributed_lock(key = "a", on_busy = Reply::busy(&id), on_error = |err| Reply::from(err))]
fn answer(id: String) -> Reply { Reply::ok(id) }
// ---------------------------------------- becomes
fn answer(id:String)-> Reply {
    use::lockable_runtime::__private as __lockable;
    let call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("a", ::core::concat!(::core::module_path!(), "::answer"));
        &LABEL
    }
    , ::core::format_args!("a"));
    let error = match __lockable::run_blocking_even_when_busy(call, move |lease:::core::option::Option <__lockable::Lease> | {
        if false {
            return __lockable::absent::<Reply> ();
        }
        let _= (&id, );
        match lease {
            ::core::option::Option::None => Reply::busy(&id), ::core::option::Option::Some(_)=>  {
                Reply::ok(id)
            }
        }
    }
    ) {
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
    let err = error;
    Reply::from(err)
}
