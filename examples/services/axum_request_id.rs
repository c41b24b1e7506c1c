//! A web service whose locks tell which request holds them: its id, from the header `Req-Id`, stands
//! at the end of the lock's value in Redis.
//!
//! Run it with `cargo run --example axum_request_id`; it sends a few requests to itself and ends. Set
//! `LOCKABLE_URL=redis://127.0.0.1:6379` and watch `redis-cli MONITOR` to see the values, and `PORT`
//! for a port of your choice. Watch for one request that is refused while another one pays, and for
//! the same id in the handler and in the response.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::post;
use lockable_runtime::tower::RequestIdLayer;
use lockable_runtime::{Locker, RequestId, distributed_lock, install};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One payment of an order at a time, over all instances of the service.
#[distributed_lock(
    key = "order:{order_id}",
    expire = 10,
    on_busy = (StatusCode::CONFLICT, "somebody else is paying".to_owned()),
    on_error = |err| (StatusCode::SERVICE_UNAVAILABLE, err.to_string())
)]
async fn pay(Path(order_id): Path<u64>) -> (StatusCode, String) {
    let id = RequestId::current().unwrap_or_else(RequestId::generate);
    println!("  handler: request {id} holds the lock of order {order_id}");
    tokio::time::sleep(Duration::from_millis(200)).await;
    (StatusCode::OK, format!("order {order_id} is paid"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    install(Locker::connect(&url).await?)?;

    let app = Router::new().route("/orders/{order_id}", post(pay)).layer(RequestIdLayer::new());
    let port = std::env::var("PORT").map_or(Ok(0), |port| port.parse())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    let address = listener.local_addr()?;
    println!("a service on http://{address}");
    tokio::spawn(async move { axum::serve(listener, app).await });

    println!("two requests for one order at once:");
    tokio::try_join!(
        request(address, "/orders/7", "Req-Id: checkout-1\r\n"),
        request(address, "/orders/7", "Req-Id: checkout-2\r\n"),
    )?;
    println!("a request without an id:");
    request(address, "/orders/8", "").await?;
    Ok(())
}

/// Sends one request and prints what matters of its response.
async fn request(address: SocketAddr, path: &str, headers: &str) -> std::io::Result<()> {
    let mut connection = TcpStream::connect(address).await?;
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}");
    connection.write_all(format!("{head}\r\n").as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;

    let (head, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.lines().next().unwrap_or_default();
    let id = head.lines().find(|line| line.starts_with("req-id:")).unwrap_or("no req-id");
    println!("  client: {status}, {id}, {body}");
    Ok(())
}
