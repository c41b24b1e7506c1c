#[distributed_lock(key = "report:{day}", expire = "1m", renew, max_hold = LONGEST, min_hold = 3, on_lost = finish)]
async fn report(day: u32) -> Option<Report> { gather(day).await }
// ---------------------------------------- becomes
async fn report(day:u32)-> Option <Report>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("report:{day}", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("report:{day}", day = __lockable::Part::new(&day, "")));
    call.options.renew = true;
    call.expire = ::core::option::Option::Some(::core::time::Duration::from_millis(60000u64));
    call.options.max_hold = ::core::option::Option::Some(__lockable::IntoHold::into_hold(LONGEST));
    call.options.min_hold = ::core::option::Option::Some(::core::time::Duration::from_millis(3000u64));
    call.options.on_lost = __lockable::OnLost::Finish;
    let body = async move {
        if false {
            return __lockable::absent::<Option <Report> > ();
        }
        let _= (&day, );
         {
            gather(day).await
        }
    }
    ;
    let value = __lockable::value::<Option <Report> > (__lockable::run(call, body).await);
     {
        use __lockable::Late as _;
        __lockable::Returned::new(&value).check();
    }
    value
}
