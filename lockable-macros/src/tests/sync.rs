#[distributed_lock(key = "order:{id}", guard = lock)]
fn settle(&mut self, id: u64) -> Result<u64, ShopError> { self.charge(id, lock.fencing_token()) }
// ---------------------------------------- becomes
fn settle(&mut self, id:u64)-> Result <u64, ShopError>  {
    use::lockable_runtime::__private as __lockable;
    let call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("order:{id}", ::core::concat!(::core::module_path!(), "::settle"));
        &LABEL
    }
    , ::core::format_args!("order:{id}", id = __lockable::Part::new(&id, "")));
    let error = match __lockable::run_blocking(call, move |lock:__lockable::Lease | {
        if false {
            return __lockable::absent::<Result <u64, ShopError> > ();
        }
        let _= (&id, &self, );
         {
            self.charge(id, lock.fencing_token())
        }
    }
    ) {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <Result <u64, ShopError> as __lockable::Refused> ::refused(error)
}
