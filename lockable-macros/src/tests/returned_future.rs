#[distributed_lock(key = "a")]
fn settle() -> impl Future<Output = u8> + Send { charge() }
// ---------------------------------------- becomes
#[allow (unused)]fn settle()-> impl Future <Output = u8> +Send {
    charge()
}
::core::compile_error! {
    "the future would run after the lock is released\nhelp: write it as `async fn settle(..) -> u8`"
}
