#[distributed_lock(keys = ["account:{from}", "account:{to}"], wait = 3, guard = locks)]
pub async fn transfer(from: u64, to: u64) -> Option<u64> { Some(locks.len()) }
// ---------------------------------------- becomes
pub async fn transfer(from:u64, to:u64)-> Option <u64>  {
    use::lockable_runtime::__private as __lockable;
    let mut call = __lockable::Call::of_all( {
        static LABEL:__lockable::Label = __lockable::Label::new("account:{from}, account:{to}", ::core::concat!(::core::module_path!(), "::transfer"));
        &LABEL
    }
    , [("account:{from}" , :: core :: format_args ! ("account:{from}" , from = __lockable :: Part :: new (& from , ""))) , ("account:{to}" , :: core :: format_args ! ("account:{to}" , to = __lockable :: Part :: new (& to , "")))]);
    call.options.wait = __lockable::Wait::AtMost(::core::time::Duration::from_millis(3000u64));
    let cell = __lockable::LeasesCell::default();
    let body =  {
        let cell = ::core::clone::Clone::clone(&cell);
        async move {
            if false {
                return __lockable::absent::<Option <u64> > ();
            }
            let _= (&to, &from, );
            let locks = cell.lease().await;
             {
                Some(locks.len())
            }
        }
    }
    ;
    __lockable::value::<Option <u64> > (__lockable::run(call, body).lease_into(cell).await)
}
