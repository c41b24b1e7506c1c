#[distributed_lock(key = KEY, on_busy = skip, prefix = "jobs:", crate = ::shop::locks)]
#[must_use]
async fn hidden() -> Result<Option<impl Display>, E> { #![allow(unused)] Ok(None) }
// ---------------------------------------- becomes
#[must_use]async fn hidden()-> Result <Option <impl Display>, E>  {
    #![allow (unused)]use::shop::locks::__private as __lockable;
    let mut call = __lockable::Call::with_key( {
        static LABEL:__lockable::Label = __lockable::Label::new("KEY", ::core::concat!(::core::module_path!(), "::hidden"));
        &LABEL
    }
    , KEY);
    call.prefix = ::core::option::Option::Some("jobs:");
    let body = async move {
        if false {
            return __lockable::absent::<Result <Option <_> , E> > ();
        }
         {
            Ok(None)
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
        ::core::result::Result::Err(error)if error.is_busy()=> return __lockable::Skip::skipped(&error), ::core::result::Result::Err(error)=> error,
    }
    ;
    <Result <Option <_> , E> as __lockable::RefusedBesideOnBusy> ::refused(error)
}
