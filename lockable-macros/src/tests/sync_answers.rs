#[distributed_lock(key = "a", on_busy = Reply::busy(&id), on_error = |err| Reply::from(err))]
fn answer(id: String) -> Reply { Reply::ok(id) }
// ---------------------------------------- becomes
fn answer(id:String)-> Reply {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("a", ::core::concat!(::core::module_path!(), "::answer"));
        &LABEL
    }
    , ::core::format_args!("a"));
    let error = match::lockable_runtime::__private::run_blocking_even_when_busy(call, move |lease:::core::option::Option <::lockable_runtime::__private::Lease> | {
        if false {
            return::lockable_runtime::__private::absent::<Reply> ();
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
            ::lockable_runtime::__private::Returned::new(&value).is_no_future();
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    let err = error;
    Reply::from(err)
}
