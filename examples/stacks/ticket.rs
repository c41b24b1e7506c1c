//! A web request begins, and a worker of a queue finishes: how does the lock of an order get from one to the other?
//!
//! The handler is one of `axum`, and the worker one of `apalis`. The handler acquires the lock, turns its guard into a
//! ticket, and puts the ticket's text into the message. The queue delivers some messages twice, or late, and a worker
//! dies; the worker acknowledges a message only when its invoice is written.
//!
//! In this folder, run it with `cargo run --bin ticket`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep the
//! locks in Redis. Watch for one invoice for each order, and for the request that is refused while the worker is to
//! come.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use apalis::prelude::{BoxDynError, Data, MemoryStorage, TaskSink, WorkerBuilder, WorkerContext};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use lockable_runtime::{LockError, Locker, Ticket, lock_key};

const LONGEST: Duration = Duration::from_mins(10);

/// In place of a queue that other machines read: what is not acknowledged.
static SENT: Mutex<Vec<Message>> = Mutex::new(Vec::new());
/// The first message of order 4 cannot be sent.
static FAILED: AtomicBool = AtomicBool::new(false);
/// In place of the database: how often each order has an invoice.
static INVOICES: Mutex<BTreeMap<u64, u32>> = Mutex::new(BTreeMap::new());
/// How many deliveries are left in this round of the queue.
static LEFT: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone)]
struct Message {
    order: u64,
    /// A secret, as a password is one.
    ticket: String,
}

/// What the handler knows.
#[derive(Clone)]
struct Web {
    locks: Locker,
    /// As long as a message may wait for a worker.
    waits: Duration,
}

/// `POST /orders/{order}/invoice`
async fn invoice(State(web): State<Web>, Path(order): Path<u64>) -> StatusCode {
    match begin(&web, order).await {
        Ok(status) => status,
        Err(error) if error.is_busy() => StatusCode::CONFLICT,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// No other call has the order from here to the end of the worker's call.
async fn begin(web: &Web, order: u64) -> Result<StatusCode, LockError> {
    let request = web.locks.lock(lock_key!("order:{order}")?).wait(Duration::ZERO);
    let ticket = request.acquire().await?.into_ticket(web.waits).await?;
    if !send(Message { order, ticket: ticket.expose_secret() }) {
        // No worker needs the ticket: without this line, the order is locked for its time.
        web.locks.redeem(ticket).acquire().await?.release().await?;
        return Ok(StatusCode::SERVICE_UNAVAILABLE);
    }
    Ok(StatusCode::ACCEPTED)
}

fn send(message: Message) -> bool {
    if message.order == 4 && !FAILED.swap(true, Ordering::SeqCst) {
        return false;
    }
    SENT.lock().expect("not poisoned").push(message);
    true
}

/// What the worker does with a message, which it acknowledges after `Ok`.
async fn finish(locks: &Locker, message: &Message) -> Result<(), BoxDynError> {
    let ticket: Ticket = message.ticket.parse()?;
    let request = locks.redeem(ticket).renew().max_hold(LONGEST);
    match request.run(write_invoice(message.order)).await {
        // The lock is free: the message is late, or its worker has died, or the work is done. Only the data know.
        Err(error) if error.is_lost() && !error.is_taken() => {
            println!("order {}: the lock is free, so look", message.order);
            let request = locks.lock(lock_key!("order:{}", message.order)?).wait(Duration::ZERO);
            let request = request.renew().max_hold(LONGEST);
            Ok(request.run(write_invoice(message.order)).await?)
        }
        // If another worker has it, that one may die: it is an error, and the message comes again.
        outcome => Ok(outcome?),
    }
}

/// Looks, under the lock, whether it is done.
async fn write_invoice(order: u64) {
    if INVOICES.lock().expect("not poisoned").contains_key(&order) {
        return println!("order {order}: the invoice is there already");
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    *INVOICES.lock().expect("not poisoned").entry(order).or_default() += 1;
    println!("order {order}: the invoice is written");
}

async fn deliver(
    message: Message,
    locks: Data<Locker>,
    worker: WorkerContext,
) -> Result<(), BoxDynError> {
    if let Err(error) = finish(&locks, &message).await {
        println!("order {}: delivered again later: {error}", message.order);
        SENT.lock().expect("not poisoned").push(message);
    }
    if LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        worker.stop()?;
    }
    Ok(())
}

/// Delivers each message until a worker has acknowledged it.
async fn work_off(locks: &Locker) -> Result<(), Box<dyn Error>> {
    loop {
        let messages = std::mem::take(&mut *SENT.lock().expect("not poisoned"));
        if messages.is_empty() {
            return Ok(());
        }
        LEFT.store(messages.len(), Ordering::SeqCst);
        let mut queue = MemoryStorage::new();
        for message in messages {
            queue.push(message).await?;
        }
        let worker = WorkerBuilder::new("invoices").backend(queue).data(locks.clone());
        worker.build(deliver).run().await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://ticket".to_owned());
    let (locks, backend) = (Locker::connect(&url).await?, Locker::connect(&url).await?);
    let late = Web { locks: locks.clone(), waits: Duration::from_millis(100) };
    let web = Web { locks: locks.clone(), waits: Duration::from_mins(5) };
    let post = async |order| invoice(State(web.clone()), Path(order)).await;

    // Order 1 waits in a backlog for longer than its ticket is valid.
    assert_eq!(invoice(State(late.clone()), Path(1)).await, StatusCode::ACCEPTED);
    tokio::time::sleep(2 * late.waits).await;
    // Order 2: the user presses the button again, and its message is delivered twice.
    assert_eq!(post(2).await, StatusCode::ACCEPTED);
    let again = post(2).await;
    println!("order 2 once more: {again}");
    assert_eq!(again, StatusCode::CONFLICT);
    let twice = SENT.lock().expect("not poisoned").last().cloned();
    SENT.lock().expect("not poisoned").extend(twice);
    // Order 3: its worker dies after it has redeemed the ticket, and the queue delivers the message again.
    assert_eq!(post(3).await, StatusCode::ACCEPTED);
    let message = SENT.lock().expect("not poisoned").last().cloned().ok_or("no message")?;
    let request = backend.redeem(message.ticket.parse()?).expire(Duration::from_secs(2));
    std::mem::forget(request.acquire().await?);
    // Order 4: its message cannot be sent. The order is free at once for the next request.
    assert_eq!(post(4).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(post(4).await, StatusCode::ACCEPTED);

    work_off(&backend).await?;
    let invoices = INVOICES.lock().expect("not poisoned").clone();
    println!("invoices of each order: {invoices:?}");
    assert_eq!(invoices, BTreeMap::from([(1, 1), (2, 1), (3, 1), (4, 1)]));
    assert!(locks.inspect("order:1").await?.is_none());
    Ok(())
}
