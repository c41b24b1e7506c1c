#[distributed_lock(key = "order:{id}", guard = lock)]
fn settle(&mut self, id: u64) -> Result<u64, ShopError> { self.charge(id, lock.fencing_token()) }
// ---------------------------------------- becomes
fn settle(&mut self, id:u64)-> Result <u64, ShopError>  {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("order:{id}", ::core::concat!(::core::module_path!(), "::settle"));
        &LABEL
    }
    , ::core::format_args!("order:{id}", id = ::lockable_runtime::__private::Part::new(&id, "")));
    let error = match::lockable_runtime::__private::run_blocking(call, move |lock:::lockable_runtime::__private::Lease | {
        if false {
            return::lockable_runtime::__private::absent::<Result <u64, ShopError> > ();
        }
        let _= (&id, &self, );
         {
            self.charge(id, lock.fencing_token())
        }
    }
    ) {
        ::core::result::Result::Ok(value)=>  {
            ::lockable_runtime::__private::Returned::new(&value).is_no_future();
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <Result <u64, ShopError> as::lockable_runtime::__private::Refused> ::refused(error)
}
