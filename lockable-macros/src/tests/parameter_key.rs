#[distributed_lock(key = "order:{order_id}:{line}", expire = 10)]
pub async fn settle(order_id: u64, line: u8) -> Option<Receipt> { charge(order_id, line).await }
// ---------------------------------------- becomes
pub async fn settle(order_id:u64, line:u8)-> Option <Receipt>  {
    let call = ::lockable_runtime::__private::Call::new("order:{order_id}:{line}", ::core::format_args!("order:{order_id}:{line}", order_id = ::lockable_runtime::__private::Part::new(&order_id, ":"), line = ::lockable_runtime::__private::Part::new(&line, ""))).expire(::core::time::Duration::from_millis(10000u64));
    let body = async move {
        if let::core::option::Option::Some(value)= ::core::option::Option::None::<Option <Receipt> >  {
            return value;
        }
        let _= (&line, &order_id, );
         {
            charge(order_id, line).await
        }
    }
    ;
    let error = match::lockable_runtime::__private::run(call, body).await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <Option <Receipt> as::lockable_runtime::__private::Refused> ::refused(error)
}
