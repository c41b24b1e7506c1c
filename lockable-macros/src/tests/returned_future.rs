#[distributed_lock(key = "a")]
fn settle() -> impl Future<Output = u8> + Send { charge() }
// ---------------------------------------- becomes
#[allow (unused)]fn settle()-> impl Future <Output = u8> +Send {
    charge()
}
::core::compile_error! {
    "the future would run after the lock is released\nhelp: write it as `async fn settle(..) -> u8`\nhelp: for work that ends elsewhere, acquire a guard in place of the attribute, and pass the lock on by `LockGuard::into_ticket`\nhelp: if its work does not need the lock, return it as `AfterRelease<..>`"
}
