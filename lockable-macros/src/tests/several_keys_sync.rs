#[distributed_lock(keys = skus, guard = locks)]
fn order(skus: Vec<LockKey>) { work(&locks) }
// ---------------------------------------- becomes
fn order(skus:Vec <LockKey> ) {
    use::lockable_runtime::__private as __lockable;
    let call = __lockable::Call::with_keys( {
        static LABEL:__lockable::Label = __lockable::Label::new("skus", ::core::concat!(::core::module_path!(), "::order"));
        &LABEL
    }
    , skus);
    let error = match __lockable::run_blocking(call, move |locks:__lockable::Leases | {
        if false {
            return __lockable::absent::<()> ();
        }
         {
            work(&locks)
        }
    }
    ) {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <()as __lockable::Refused> ::refused(error)
}
