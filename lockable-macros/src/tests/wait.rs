#[distributed_lock(key = "report", wait = "3s", fair, expire = 20, on_busy = skip)]
async fn report() -> Option<Report> { gather().await }
// ---------------------------------------- becomes
async fn report()-> Option <Report>  {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("report", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("report")).wait(::core::time::Duration::from_millis(3000u64)).fair().expire(::core::time::Duration::from_millis(20000u64));
    let body = async move {
        if false {
            return::lockable_runtime::__private::absent::<Option <Report> > ();
        }
         {
            gather().await
        }
    }
    ;
    let error = match::lockable_runtime::__private::run(call, body).await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)if error.is_busy()||error.is_wait_limit_reached()=> return::lockable_runtime::__private::Skip::skipped(&error), ::core::result::Result::Err(error)=> error,
    }
    ;
    <Option <Report> as::lockable_runtime::__private::Refused> ::refused(error)
}
