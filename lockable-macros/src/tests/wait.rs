#[distributed_lock(key = "report", wait = "3s", fair, expire = 20, on_busy = skip)]
async fn report() -> Option<Report> { gather().await }
// ---------------------------------------- becomes
async fn report()-> Option <Report>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("report", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("report"));
    call.options.wait = __lockable::Wait::AtMost(::core::time::Duration::from_millis(3000u64));
    call.options.fair = true;
    call.expire = ::core::option::Option::Some(::core::time::Duration::from_millis(20000u64));
    let body = async move {
        if false {
            return __lockable::absent::<Option <Report> > ();
        }
         {
            gather().await
        }
    }
    ;
    let error = match __lockable::run(call, body).await {
        ::core::result::Result::Ok(value)=>  {
             {
                use __lockable::Late as _;
                __lockable::Returned::new(&value).check();
            }
            return value;
        }
        ::core::result::Result::Err(error)if error.is_busy()||error.is_wait_limit_reached()=> return __lockable::Skip::skipped(&error), ::core::result::Result::Err(error)=> error,
    }
    ;
    <Option <Report> as __lockable::RefusedBesideOnBusy> ::refused(error)
}
