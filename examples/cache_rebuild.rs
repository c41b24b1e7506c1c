//! A hot cache entry expires: how do I keep every request from asking the database at once?
//!
//! One request rebuilds it. The others serve what is stale, or wait where there is nothing yet.
//!
//! In this folder, run it with `cargo run --example cache_rebuild`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to
//! keep the lock in Redis. Watch how often the database is asked.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::task::JoinSet;

const REQUESTS: usize = 200;

struct Service {
    locks: Locker,
    /// In place of a cache: the version of the menu, and until when it is fresh.
    cached: Mutex<Option<(u32, Instant)>>,
    /// In place of a database, which has a new version for each query.
    queries: AtomicU32,
}

impl Service {
    async fn menu(&self) -> Result<u32, LockError> {
        match self.cached() {
            Some((menu, true)) => Ok(menu),
            Some((stale, false)) => Ok(self.refresh().await.unwrap_or(stale)),
            None => self.fill().await,
        }
    }

    /// `None` while another request rebuilds, and when Redis does not answer: stale is better then.
    #[distributed_lock(key = "cache:menu", expire = 10, locker = self.locks)]
    async fn refresh(&self) -> Option<u32> {
        Some(self.rebuild().await)
    }

    /// There is nothing to serve meanwhile, so the others wait.
    #[distributed_lock(key = "cache:menu", expire = 10, wait = "30s", locker = self.locks)]
    async fn fill(&self) -> Result<u32, LockError> {
        Ok(self.rebuild().await)
    }

    /// Looks again first: the holder before may have rebuilt the entry.
    async fn rebuild(&self) -> u32 {
        if let Some((menu, true)) = self.cached() {
            return menu;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        let menu = self.queries.fetch_add(1, Ordering::Relaxed) + 1;
        self.store(menu, Instant::now() + Duration::from_secs(60));
        menu
    }

    /// The menu, and whether it is fresh.
    fn cached(&self) -> Option<(u32, bool)> {
        self.cached.lock().unwrap().map(|(menu, until)| (menu, Instant::now() < until))
    }

    fn store(&self, menu: u32, until: Instant) {
        *self.cached.lock().unwrap() = Some((menu, until));
    }
}

/// Many requests at once; gives how many of them got the newest menu.
async fn rush(service: &Arc<Service>) -> Result<usize, Box<dyn Error>> {
    let request = |service: Arc<Service>| async move { service.menu().await };
    let requests: JoinSet<_> = (0..REQUESTS).map(|_| request(service.clone())).collect();
    let menus = requests.join_all().await.into_iter().collect::<Result<Vec<u32>, _>>()?;
    let queries = service.queries.load(Ordering::Relaxed);
    let newest = menus.into_iter().filter(|menu| *menu == queries).count();
    let stale = REQUESTS - newest;
    println!("{newest:3} got the newest menu, {stale:3} a stale one; queries: {queries}");
    Ok(newest)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let (locks, queries) = (Locker::connect(&url).await?, AtomicU32::new(0));
    let service = Arc::new(Service { locks, cached: Mutex::new(None), queries });

    println!("{REQUESTS} requests find nothing cached, and wait for the one that asks:");
    let newest = rush(&service).await?;
    assert_eq!((newest, service.queries.load(Ordering::Relaxed)), (REQUESTS, 1));

    println!("{REQUESTS} requests find an expired entry, and serve it while one rebuilds it:");
    service.store(1, Instant::now());
    let newest = rush(&service).await?;
    assert!((1..REQUESTS).contains(&newest));
    assert_eq!(service.queries.load(Ordering::Relaxed), 2);
    Ok(())
}
