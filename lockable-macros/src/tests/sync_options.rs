#[distributed_lock(key = "a", on_lost = finish, renew, wait, blocking)]
fn work() -> Option<u8> { Some(1) }
// ---------------------------------------- becomes
fn work()-> Option <u8>  {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("a", ::core::concat!(::core::module_path!(), "::work"));
        &LABEL
    }
    , ::core::format_args!("a")).wait_forever().blocking().renew().on_lost_finish();
    let error = match::lockable_runtime::__private::run_blocking(call, move |_:::lockable_runtime::__private::Lease | {
        if false {
            return::lockable_runtime::__private::absent::<Option <u8> > ();
        }
         {
            Some(1)
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
    <Option <u8> as::lockable_runtime::__private::Refused> ::refused(error)
}
