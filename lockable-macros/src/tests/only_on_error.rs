#[distributed_lock(key = "a", on_error = |err| -> Option<u8> { log(err) })]
async fn only() -> Option<u8> { Some(1) }
// ---------------------------------------- becomes
async fn only()-> Option <u8>  {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("a", ::core::concat!(::core::module_path!(), "::only"));
        &LABEL
    }
    , ::core::format_args!("a"));
    let body = async move {
        if false {
            return::lockable_runtime::__private::absent::<Option <u8> > ();
        }
         {
            Some(1)
        }
    }
    ;
    let error = match::lockable_runtime::__private::run(call, body).await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)if error.is_busy()=> return <Option <u8> as::lockable_runtime::__private::RefusedBesideOnError> ::refused(error), ::core::result::Result::Err(error)=> error,
    }
    ;
    let err = error;
    let value:Option <u8> =  {
        log(err)
    }
    ;
    value
}
