/// What the functions fail with.
pub struct Failure(pub String);

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self(error.to_string())
    }
}

#[derive(Debug)]
pub struct Order {
    pub sku: String,
    pub pieces: Vec<u64>,
}

#[derive(Debug)]
pub struct Service {
    pub name: String,
    pub limit: u64,
}

static LOCKER: OnceLock<Locker> = OnceLock::new();

/// The locker of those who lock by hand.
pub fn locker() -> &'static Locker {
    LOCKER.get().expect("set at the start")
}

/// Where by hand an error goes that the function cannot return.
pub fn report(error: &LockError) {
    eprintln!("{error}");
}

pub async fn fetch(id: u64) -> Option<u64> {
    ready(id.checked_mul(3)).await
}

pub async fn store(name: &str, value: u64) -> Result<u64, Failure> {
    ready(value.checked_add(1).ok_or_else(|| Failure(name.to_owned()))).await
}
