#[distributed_lock(key = "order:{order_id}:{line}", expire = 10, on_lost = cancel)]
pub async fn settle(order_id: u64, line: u8) -> Option<Receipt> { charge(order_id, line).await }
// ---------------------------------------- becomes
pub async fn settle(order_id:u64, line:u8)-> Option <Receipt>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("order:{order_id}:{line}", ::core::concat!(::core::module_path!(), "::settle"));
        &LABEL
    }
    , ::core::format_args!("order:{order_id}:{line}", order_id = __lockable::Part::new(&order_id, ":"), line = __lockable::Part::new(&line, "")));
    call.expire = ::core::option::Option::Some(::core::time::Duration::from_millis(10000u64));
    let body = async move {
        if false {
            return __lockable::absent::<Option <Receipt> > ();
        }
        let _= (&line, &order_id, );
         {
            charge(order_id, line).await
        }
    }
    ;
    let value = __lockable::value::<Option <Receipt> > (__lockable::run(call, body).await);
     {
        use __lockable::Late as _;
        __lockable::Returned::new(&value).check();
    }
    value
}
