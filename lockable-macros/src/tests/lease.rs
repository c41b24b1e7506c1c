#[distributed_lock(key = "report:{day}", expire = "1m", renew, max_hold = LONGEST, min_hold = 3, on_lost = finish)]
async fn report(day: u32) -> Option<Report> { gather(day).await }
// ---------------------------------------- becomes
async fn report(day:u32)-> Option <Report>  {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("report:{day}", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("report:{day}", day = ::lockable_runtime::__private::Part::new(&day, ""))).expire(::core::time::Duration::from_millis(60000u64)).renew().max_hold(LONGEST).min_hold(::core::time::Duration::from_millis(3000u64)).on_lost_finish();
    let body = async move {
        if false {
            return::lockable_runtime::__private::absent::<Option <Report> > ();
        }
        let _= (&day, );
         {
            gather(day).await
        }
    }
    ;
    ::lockable_runtime::__private::value::<Option <Report> > (::lockable_runtime::__private::run(call, body).await)
}
