//! How does a handler of actix-web let one request in, and answer the others with 409?
//!
//! The attribute stands on the handler itself. The workers of actix-web are threads, each with a runtime of its own;
//! all of them share one `Locker`, as further instances of the service would share its keys.
//!
//! Run it with `LOCKABLE_URL=redis://127.0.0.1:6379 cargo run --bin actix`; it sends requests to itself, and ends. Watch
//! for the second request for an order, which is refused while the first one pays.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{App, HttpServer, web};
use lockable_runtime::{Locker, distributed_lock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One payment of an order at a time, over all workers and all instances.
#[distributed_lock(
    key = "order:{order}",
    expire = 10,
    locker = locks.get_ref(),
    on_busy = ("another request pays it".to_owned(), StatusCode::CONFLICT),
    on_error = |error| (error.to_string(), StatusCode::SERVICE_UNAVAILABLE)
)]
async fn pay(locks: web::Data<Locker>, order: web::Path<u64>) -> (String, StatusCode) {
    tokio::time::sleep(Duration::from_millis(500)).await;
    (format!("order {order} is paid"), StatusCode::OK)
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Ok(url) = std::env::var("LOCKABLE_URL") else {
        println!(
            "LOCKABLE_URL is not set. With it, this program serves `POST /orders/7/pay` on actix-web,"
        );
        println!(
            "sends it two requests at once, and prints their answers: 200, and 409 for the busy one."
        );
        return Ok(());
    };
    let locks = web::Data::new(Locker::connect(&url).await?);
    let app = move || {
        App::new().app_data(locks.clone()).route("/orders/{order}/pay", web::post().to(pay))
    };
    let server = HttpServer::new(app).workers(2).bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = *server.addrs().first().ok_or("no address")?;
    println!("a service on http://{address}");
    let server = server.run();
    let handle = server.handle();
    let serving = actix_web::rt::spawn(server);

    println!("two requests for one order at once:");
    let (one, two) = tokio::try_join!(request(address, 7), request(address, 7))?;
    assert_eq!((one.min(two), one.max(two)), (200, 409));
    println!("a request for another order, and one after the first:");
    let (other, after) = tokio::try_join!(request(address, 8), request(address, 7))?;
    assert_eq!((other, after), (200, 200));

    // It lets the requests end that it has taken; then the last releases are waited for.
    handle.stop(true).await;
    serving.await??;
    lockable_runtime::shutdown(Duration::from_secs(5)).await?;
    Ok(())
}

/// Sends one request, prints its answer, and returns the status.
async fn request(address: SocketAddr, order: u64) -> Result<u16, Box<dyn Error>> {
    let mut connection = TcpStream::connect(address).await?;
    let head = format!("POST /orders/{order}/pay HTTP/1.1\r\nHost: {address}\r\nConnection: close");
    connection.write_all(format!("{head}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;

    let (head, body) = response.split_once("\r\n\r\n").ok_or("no end of the head")?;
    let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    println!("  order {order}: {status}, {body}");
    Ok(status)
}
