#[distributed_lock(key = "", expires = 3)]
async fn f(id: u64) { g(id).await }
// ---------------------------------------- becomes
#[allow (unused)]async fn f(id:u64) {
    g(id).await
}
::core::compile_error! {
    "the lock key is empty\nhelp: every function with an empty key would share one lock"
}
::core::compile_error! {
    "unknown option `expires`, did you mean `expire`?\nhelp: the options are `key`, `keys`, `prefix`, `expire`, `wait`, `fair`, `blocking`, `permits`, `renew`, `max_hold`, `min_hold`, `once`, `on_busy`, `on_error`, `on_lost`, `guard`, `locker`, `crate`"
}
