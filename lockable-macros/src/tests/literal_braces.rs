#[distributed_lock(key = "order:{{id}}")]
async fn settle(id: u64) { charge(id).await }
// ---------------------------------------- becomes
async fn settle(id:u64) {
     {
        #[deprecated = "the key contains the literal text `{id}`; write `{id}` in single braces to insert the value, or `key(\"order:{{id}}\")` where the text is meant"]const LITERAL_BRACES:()= ();
        LITERAL_BRACES
    }
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("order:{{id}}", ::core::concat!(::core::module_path!(), "::settle"));
        &LABEL
    }
    , ::core::format_args!("order:{{id}}"));
    let body = async move {
        if false {
            return::lockable_runtime::__private::absent::<()> ();
        }
        let _= (&id, );
         {
            charge(id).await
        }
    }
    ;
    ::lockable_runtime::__private::value::<()> (::lockable_runtime::__private::run(call, body).await)
}
