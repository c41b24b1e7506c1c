#[distributed_lock(key = "order:{{id}}")]
async fn settle(id: u64) { charge(id).await }
// ---------------------------------------- becomes
async fn settle(id:u64) {
    use::lockable_runtime::__private as __lockable;
     {
        #[deprecated = "the key contains the literal text `{id}`; write `{id}` in single braces to insert the value, or `key(\"order:{{id}}\")` where the text is meant"]const LITERAL_BRACES:()= ();
        LITERAL_BRACES
    }
    let call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("order:{{id}}", ::core::concat!(::core::module_path!(), "::settle"));
        &LABEL
    }
    , ::core::format_args!("order:{{id}}"));
    let body = async move {
        if false {
            return __lockable::absent::<()> ();
        }
        let _= (&id, );
         {
            charge(id).await
        }
    }
    ;
    __lockable::value::<()> (__lockable::run(call, body).await)
}
