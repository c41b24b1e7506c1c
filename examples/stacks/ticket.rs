//! A web request begins, and a worker of a queue finishes: how does the lock of an order get from one to the other?
//!
//! The handler is one of `axum`, and the worker one of `apalis`. The handler acquires the lock, turns its guard into a
//! ticket, and puts the ticket's text into the message. The queue delivers each message twice here, as queues do now
//! and then; the ticket is redeemed once.
//!
//! In this folder, run it with `cargo run --bin ticket`; set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep the
//! locks in Redis. Watch for one invoice for each order, and for the request that is refused while the worker is to
//! come.

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use apalis::prelude::{BoxDynError, Data, MemoryStorage, TaskSink, WorkerBuilder, WorkerContext};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use lockable_runtime::{LockError, Locker, Ticket, lock_key};

const ORDERS: u64 = 3;

/// In place of a queue that other machines read.
static SENT: Mutex<Vec<Message>> = Mutex::new(Vec::new());
static INVOICES: AtomicUsize = AtomicUsize::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone)]
struct Message {
    order: u64,
    /// A secret, as a password is one.
    ticket: String,
}

/// `POST /orders/{order}/invoice`
async fn invoice(State(locks): State<Locker>, Path(order): Path<u64>) -> StatusCode {
    match begin(&locks, order).await {
        Ok(()) => StatusCode::ACCEPTED,
        Err(error) if error.is_busy() => StatusCode::CONFLICT,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Nobody else has the order from here to the end of the worker's call.
async fn begin(locks: &Locker, order: u64) -> Result<(), LockError> {
    let request = locks.lock(lock_key!("order:{order}")?).wait(Duration::ZERO);
    let guard = request.acquire().await?;
    // For as long as the message may wait. The work has a lease of its own.
    let ticket = guard.into_ticket(Duration::from_mins(1)).await?;
    let message = Message { order, ticket: ticket.expose_secret() };
    SENT.lock().expect("not poisoned").push(message);
    Ok(())
}

/// What the worker does with a message.
async fn finish(
    message: Message,
    locks: Data<Locker>,
    worker: WorkerContext,
) -> Result<(), BoxDynError> {
    let ticket: Ticket = message.ticket.parse()?;
    let work = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        INVOICES.fetch_add(1, Ordering::SeqCst);
        println!("order {}: the invoice is sent", message.order);
    };
    match locks.redeem(ticket).renew().max_hold(Duration::from_mins(10)).run(work).await {
        // Another delivery has the lock, or had it.
        Err(error) if error.is_lost() => drop(REFUSED.fetch_add(1, Ordering::SeqCst)),
        outcome => outcome?,
    }
    let all = INVOICES.load(Ordering::SeqCst) + REFUSED.load(Ordering::SeqCst);
    if all == 2 * usize::try_from(ORDERS)? {
        worker.stop()?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://ticket".to_owned());
    let (web, backend) = (Locker::connect(&url).await?, Locker::connect(&url).await?);
    for order in 1..=ORDERS {
        assert_eq!(invoice(State(web.clone()), Path(order)).await, StatusCode::ACCEPTED);
    }
    // The user presses the button again.
    let again = invoice(State(web.clone()), Path(1)).await;
    println!("order 1 once more: {again}");
    assert_eq!(again, StatusCode::CONFLICT);

    let sent = SENT.lock().expect("not poisoned").clone();
    let mut queue = MemoryStorage::new();
    for message in [sent.clone(), sent].concat() {
        queue.push(message).await?;
    }
    let worker = WorkerBuilder::new("invoices").backend(queue).data(backend);
    worker.build(finish).run().await?;

    let (invoices, refused) = (INVOICES.load(Ordering::SeqCst), REFUSED.load(Ordering::SeqCst));
    println!("{invoices} invoices, {refused} deliveries refused");
    assert_eq!((invoices, refused), (3, 3));
    assert!(web.inspect("order:1").await?.is_none());
    Ok(())
}
