#[distributed_lock(key("stock:{}:{self}:{REGION}", item.sku), expire = TTL, locker = self.locks, guard = lock)]
async fn sell(&mut self, item: &Item) -> Result<u32, ShopError> { self.db.take_one(item, lock.fencing_token()).await }
// ---------------------------------------- becomes
async fn sell(&mut self, item:&Item)-> Result <u32, ShopError>  {
    let call = ::lockable_runtime::__private::Call::new("stock:{}:{self}:{REGION}", ::core::format_args!("stock:{}:{self}:{REGION}", ::lockable_runtime::__private::Part::new(&(item.sku), ":"), self = ::lockable_runtime::__private::Part::new(&self, ":"), REGION = ::lockable_runtime::__private::Part::new(&REGION, ""))).expire(TTL).locker(&(self.locks));
    let body = ::lockable_runtime::__private::Body::new(move |lock:::lockable_runtime::__private::Lease |async move {
        if let::core::option::Option::Some(value)= ::core::option::Option::None::<Result <u32, ShopError> >  {
            return value;
        }
        let _= (&item, &self, );
         {
            self.db.take_one(item, lock.fencing_token()).await
        }
    }
    );
    let error = match call.acquire().await {
        ::core::result::Result::Ok(guard)=>  {
            let body = ::core::pin::pin!(::core::option::Option::Some(body.start(guard.lease())));
            match::lockable_runtime::__private::hold(guard, body).await {
                ::core::result::Result::Ok(value)=>  {
                    return value;
                }
                ::core::result::Result::Err(error)=> error,
            }
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <Result <u32, ShopError> as::lockable_runtime::__private::Refused> ::refused(error)
}
