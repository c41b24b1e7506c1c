#[distributed_lock(key = "order:{order_id}:{line}", expire = 10, on_lost = cancel)]
pub async fn settle(order_id: u64, line: u8) -> Option<Receipt> { charge(order_id, line).await }
// ---------------------------------------- becomes
pub async fn settle(order_id:u64, line:u8)-> Option <Receipt>  {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("order:{order_id}:{line}", ::core::concat!(::core::module_path!(), "::settle"));
        &LABEL
    }
    , ::core::format_args!("order:{order_id}:{line}", order_id = ::lockable_runtime::__private::Part::new(&order_id, ":"), line = ::lockable_runtime::__private::Part::new(&line, ""))).expire(::core::time::Duration::from_millis(10000u64));
    let body = async move {
        if false {
            return::lockable_runtime::__private::absent::<Option <Receipt> > ();
        }
        let _= (&line, &order_id, );
         {
            charge(order_id, line).await
        }
    }
    ;
    ::lockable_runtime::__private::value::<Option <Receipt> > (::lockable_runtime::__private::run(call, body).await)
}
