//! How do the locks of a web service show which request holds them?
//!
//! The request's id, from the header `Req-Id`, is the end of the lock's value in Redis.
//!
//! In this folder, run it with `cargo run --example axum_request_id`; it sends a few requests to itself and ends.
//! Set `LOCKABLE_URL=redis://127.0.0.1:6379` and watch `redis-cli MONITOR` to see the values, and `PORT` for a port
//! of your choice. Watch for one request that is refused while another one pays, and for the same id in the lock
//! and in the response.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use lockable_runtime::tower::RequestIdLayer;
use lockable_runtime::{Locker, distributed_lock, lock_key};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One payment of an order at a time, over all instances of the service; the answer is its holder.
#[distributed_lock(
    key = "order:{order_id}",
    expire = 10,
    locker = locks,
    on_busy = (StatusCode::CONFLICT, "another request".to_owned()),
    on_error = |err| (StatusCode::SERVICE_UNAVAILABLE, err.to_string())
)]
async fn pay(State(locks): State<Locker>, Path(order_id): Path<u64>) -> (StatusCode, String) {
    tokio::time::sleep(Duration::from_millis(500)).await;
    let holder = async { locks.inspect(lock_key!("order:{order_id}")?).await };
    match holder.await {
        Ok(holder) => {
            let id = holder.as_ref().and_then(|holder| holder.request_id());
            (StatusCode::OK, id.unwrap_or("unknown").to_owned())
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let app = Router::new()
        .route("/orders/{order_id}", post(pay))
        .with_state(Locker::connect(&url).await?)
        .layer(RequestIdLayer::new());
    let port = std::env::var("PORT").map_or(Ok(0), |port| port.parse())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    println!("a service on http://{address}");
    tokio::spawn(async move { axum::serve(listener, app).await });

    println!("two requests for one order at once:");
    let (one, two) = tokio::try_join!(
        request(address, "/orders/7", "Req-Id: checkout-1\r\n"),
        request(address, "/orders/7", "Req-Id: checkout-2\r\n"),
    )?;
    let (paid, refused) = if one.status == 200 { (one, two) } else { (two, one) };
    assert_eq!((paid.status, refused.status), (200, 409));
    assert_eq!(paid.holder, paid.id);

    println!("a request without an id, which is given one:");
    let paid = request(address, "/orders/8", "").await?;
    assert_eq!(paid.status, 200);
    assert!(!paid.id.is_empty() && paid.holder == paid.id);
    Ok(())
}

struct Response {
    status: u16,
    id: String,
    holder: String,
}

/// Sends one request, and prints what matters of its response.
async fn request(
    address: SocketAddr,
    path: &str,
    header: &str,
) -> Result<Response, Box<dyn Error>> {
    let mut connection = TcpStream::connect(address).await?;
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}");
    connection.write_all(format!("{head}\r\n").as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;

    let (head, holder) = response.split_once("\r\n\r\n").ok_or("no end of the head")?;
    let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    let id = head.lines().find_map(|line| line.strip_prefix("req-id: ")).unwrap_or_default();
    println!("  request {id}: {status}, the lock is held by {holder}");
    Ok(Response { status, id: id.to_owned(), holder: holder.to_owned() })
}
