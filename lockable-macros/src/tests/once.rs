#[distributed_lock(key = "report:{month}", renew, once = "40d")]
async fn report(month: &str) -> Result<Report, ShopError> { write(month).await }
// ---------------------------------------- becomes
async fn report(month:&str)-> Result <Report, ShopError>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("report:{month}", ::core::concat!(::core::module_path!(), "::report"));
        &LABEL
    }
    , ::core::format_args!("report:{month}", month = __lockable::Part::new(&month, "")));
    call.options.renew = true;
    call.options.once = ::core::option::Option::Some(__lockable::Once::For(::core::time::Duration::from_millis(3456000000u64)));
    let body = async move {
        if false {
            return __lockable::absent::<Result <Report, ShopError> > ();
        }
        let _= (&month, );
         {
            write(month).await
        }
    }
    ;
    let value = __lockable::value::<Result <Report, ShopError> > (__lockable::run(call, body).once().await);
     {
        use __lockable::Late as _;
        __lockable::Returned::new(&value).check();
    }
    value
}
