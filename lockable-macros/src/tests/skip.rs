#[distributed_lock(key = KEY, on_busy = skip, prefix = "jobs:", crate = ::shop::locks)]
#[must_use]
async fn hidden() -> Result<Option<impl Iterator<Item = u8>>, E> { #![allow(unused)] Ok(None) }
// ---------------------------------------- becomes
#[must_use]async fn hidden()-> Result <Option <impl Iterator <Item = u8>>, E>  {
    #![allow (unused)]let call = ::shop::locks::__private::Call::with_key( {
        static LABEL:::shop::locks::__private::Label = ::shop::locks::__private::Label::new("KEY", ::core::concat!(::core::module_path!(), "::hidden"));
        &LABEL
    }
    , KEY).prefix("jobs:");
    let body = async move {
        if false {
            return::shop::locks::__private::absent::<Result <Option <_> , E> > ();
        }
         {
            Ok(None)
        }
    }
    ;
    let error = match::shop::locks::__private::run(call, body).await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)if error.is_busy()=> return::shop::locks::__private::Skip::skipped(&error), ::core::result::Result::Err(error)=> error,
    }
    ;
    <Result <Option <_> , E> as::shop::locks::__private::Refused> ::refused(error)
}
