#[distributed_lock(key("stock:{}:{self}:{REGION}", item.sku), expire = TTL, locker = self.locks, guard = lock)]
async fn sell(&mut self, item: &Item) -> Result<u32, ShopError> { self.db.take_one(item, lock.fencing_token()).await }
// ---------------------------------------- becomes
async fn sell(&mut self, item:&Item)-> Result <u32, ShopError>  {
    let call = ::lockable_runtime::__private::Call::new( {
        static LABEL:::lockable_runtime::__private::Label = ::lockable_runtime::__private::Label::new("stock:{}:{self}:{REGION}", ::core::concat!(::core::module_path!(), "::sell"));
        &LABEL
    }
    , ::core::format_args!("stock:{}:{self}:{REGION}", ::lockable_runtime::__private::Part::new(&(item.sku), ":"), self = ::lockable_runtime::__private::Part::new(&self, ":"), REGION = ::lockable_runtime::__private::Part::new(&REGION, ""))).expire(TTL).locker(&(self.locks));
    let cell = ::lockable_runtime::__private::LeaseCell::default();
    let body =  {
        let cell = ::core::clone::Clone::clone(&cell);
        async move {
            if false {
                return::lockable_runtime::__private::absent::<Result <u32, ShopError> > ();
            }
            let _= (&item, &self, );
            let lock = cell.lease().await;
             {
                self.db.take_one(item, lock.fencing_token()).await
            }
        }
    }
    ;
    ::lockable_runtime::__private::value::<Result <u32, ShopError> > (::lockable_runtime::__private::run(call, body).lease_into(cell).await)
}
