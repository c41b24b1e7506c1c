#[distributed_lock(key = "order:{id}", guard = lock)]
fn settle(&mut self, id: u64) -> Result<u64, ShopError> { self.charge(id, lock.fencing_token()) }
// ---------------------------------------- becomes
fn settle(&mut self, id:u64)-> Result <u64, ShopError>  {
    let call = ::lockable_runtime::__private::Call::new("order:{id}", ::core::format_args!("order:{id}", id = ::lockable_runtime::__private::Part::new(&id, "")));
    let body = ::lockable_runtime::__private::Body::new(move |lock:::lockable_runtime::__private::Lease | {
        if let::core::option::Option::Some(value)= ::core::option::Option::None::<Result <u64, ShopError> >  {
            return value;
        }
        let _= (&id, &self, );
         {
            self.charge(id, lock.fencing_token())
        }
    }
    );
    let error = match call.acquire_blocking() {
        ::core::result::Result::Ok(guard)=>  {
            let granted = guard.lease();
            let body = move ||body.start(granted);
            match::lockable_runtime::__private::hold_blocking(guard, body) {
                ::core::result::Result::Ok(value)=>  {
                    ::lockable_runtime::__private::Returned::new(&value).is_no_future();
                    return value;
                }
                ::core::result::Result::Err(error)=> error,
            }
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <Result <u64, ShopError> as::lockable_runtime::__private::Refused> ::refused(error)
}
