//! How do several instances of a service sell one stock without selling what is not there?
//!
//! Four hundred buyers come to four instances of a shop at once, first without and then with a lock.
//!
//! In this folder, run it with `cargo run --example flash_sale`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep
//! the lock in Redis. Watch the number of items sold that were not there.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use tokio::task::JoinSet;

const INSTANCES: usize = 4;
const BUYERS: usize = 400;
const STOCK: u32 = 100;

/// The row in the database: read, changed and written back, as applications do.
#[derive(Default)]
struct Row {
    stock: AtomicU32,
    sold: AtomicU32,
}

/// One instance of the service.
#[derive(Clone)]
struct Shop {
    locks: Locker,
    row: Arc<Row>,
}

impl Shop {
    /// One sale at a time, over all instances; the buyers wait in a queue.
    #[distributed_lock(key = "stock:{item}", expire = 10, wait = "30s", locker = self.locks)]
    async fn sell(&self, item: u32) -> Result<bool, LockError> {
        Ok(self.sell_unlocked().await)
    }

    async fn sell_unlocked(&self) -> bool {
        let stock = self.row.stock.load(Ordering::Relaxed);
        if stock == 0 {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        self.row.stock.store(stock - 1, Ordering::Relaxed);
        self.row.sold.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// Lets every buyer buy one, at all instances at once; gives how many were sold.
async fn sale(shops: &[Shop], locked: bool) -> Result<u32, Box<dyn Error>> {
    let row = &shops[0].row;
    row.stock.store(STOCK, Ordering::Relaxed);
    row.sold.store(0, Ordering::Relaxed);
    let mut buyers = JoinSet::new();
    for shop in shops.iter().cycle().take(BUYERS) {
        let shop = shop.clone();
        buyers.spawn(async move {
            if locked { shop.sell(7).await } else { Ok(shop.sell_unlocked().await) }
        });
    }
    while let Some(buyer) = buyers.join_next().await {
        buyer??;
    }
    Ok(row.sold.load(Ordering::Relaxed))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://flash-sale".to_owned());
    let row = Arc::new(Row::default());
    let mut shops = Vec::new();
    for _ in 0..INSTANCES {
        // A locker of its own for each instance, as if each were a process.
        shops.push(Shop { locks: Locker::connect(&url).await?, row: Arc::clone(&row) });
    }
    println!("{BUYERS} buyers at {INSTANCES} instances, {STOCK} items:");

    let sold = sale(&shops, false).await?;
    println!("without the lock: {sold} sold, {} of them not there", sold.saturating_sub(STOCK));
    assert!(sold > STOCK);

    let sold = sale(&shops, true).await?;
    println!("with the lock:    {sold} sold, {} of them not there", sold.saturating_sub(STOCK));
    assert_eq!(sold, STOCK);
    Ok(())
}
