#[distributed_lock(key("stock:{}:{self}:{REGION}", item.sku), expire = TTL, locker = self.locks, guard = lock)]
async fn sell(&mut self, item: &Item) -> Result<u32, ShopError> { self.db.take_one(item, lock.fencing_token()).await }
// ---------------------------------------- becomes
async fn sell(&mut self, item:&Item)-> Result <u32, ShopError>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::new( {
        static LABEL:__lockable::Label = __lockable::Label::new("stock:{}:{self}:{REGION}", ::core::concat!(::core::module_path!(), "::sell"));
        &LABEL
    }
    , ::core::format_args!("stock:{}:{self}:{REGION}", __lockable::Part::new(&(item.sku), ":"), self = __lockable::Part::new(&self, ":"), REGION = __lockable::Part::new(&REGION, "")));
    call.expire = ::core::option::Option::Some(__lockable::IntoExpire::into_expire(TTL));
    call.locker(&(self.locks));
    let cell = __lockable::LeaseCell::default();
    let body =  {
        let cell = ::core::clone::Clone::clone(&cell);
        async move {
            if false {
                return __lockable::absent::<Result <u32, ShopError> > ();
            }
            let _= (&item, &self, );
            let lock = cell.lease().await;
             {
                self.db.take_one(item, lock.fencing_token()).await
            }
        }
    }
    ;
    __lockable::value::<Result <u32, ShopError> > (__lockable::run(call, body).lease_into(cell).await)
}
