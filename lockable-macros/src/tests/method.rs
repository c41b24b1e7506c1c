#[distributed_lock(key("stock:{}:{self}:{REGION}", item.sku), expire = TTL, locker = self.locks, guard = lock)]
async fn sell(&mut self, item: &Item) -> Result<u32, ShopError> { self.db.take_one(item, lock.fencing_token()).await }
// ---------------------------------------- becomes
async fn sell(&mut self, item:&Item)-> Result <u32, ShopError>  {
    let call = ::lockable_runtime::__private::Call::new("stock:{}:{self}:{REGION}", ::core::format_args!("stock:{}:{self}:{REGION}", ::lockable_runtime::__private::Part::new(&(item.sku), ":"), self = ::lockable_runtime::__private::Part::new(&self, ":"), REGION = ::lockable_runtime::__private::Part::new(&REGION, ""))).expire(TTL).locker(&(self.locks));
    let granted = ::lockable_runtime::__private::Granted::default();
    let body =  {
        let granted = ::core::clone::Clone::clone(&granted);
        async move {
            if let::core::option::Option::Some(value)= ::core::option::Option::None::<Result <u32, ShopError> >  {
                return value;
            }
            let _= (&item, &self, );
            let lock = granted.lease().await;
             {
                self.db.take_one(item, lock.fencing_token()).await
            }
        }
    }
    ;
    let error = match::lockable_runtime::__private::run(call, body).granting(granted).await {
        ::core::result::Result::Ok(value)=>  {
            return value;
        }
        ::core::result::Result::Err(error)=> error,
    }
    ;
    <Result <u32, ShopError> as::lockable_runtime::__private::Refused> ::refused(error)
}
