//! Metrics of locks for Prometheus: `/metrics` of a service, and the names that the dashboard
//! [`grafana.json`](grafana.json) draws and [`alerts.yml`](alerts.yml) watches.
//!
//! In this folder, run it with `cargo run --example prometheus`; it runs some calls that contend for one lock, asks
//! its own `/metrics`, and ends. With `-- serve` it repeats such calls, and listens on the port `PORT` of the
//! address `BIND`, for a Prometheus to scrape, until ctrl-c or SIGTERM:
//! [`../observability`](../observability/compose.yaml) has one, and the dashboard. Set
//! `LOCKABLE_URL=redis://127.0.0.1:6379` for Redis. Watch for `lockable_handoff_total`: with several calls in one
//! process most grants are local. And for the label `lock`, by which the dashboard shows each lock on its own: it
//! is the key template, so the two functions share it, and never the key.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use lockable_runtime::{LockError, Locker, distributed_lock};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// Where the histograms are cut: from a pass within the process to a wait that someone should look at.
const SECONDS: [f64; 9] = [0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

#[distributed_lock(key = "stock:{sku}", wait = "5s", renew, expire = "900ms", locker = locks)]
async fn sell(locks: &Locker, sku: u32, takes: Duration) -> Result<(), LockError> {
    tokio::time::sleep(takes).await;
    Ok(())
}

/// The same lock in one try, and with work that takes longer than its lease.
#[distributed_lock(key = "stock:{sku}", expire = "50ms", locker = locks)]
async fn count(locks: &Locker, sku: u32) -> Result<(), LockError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(())
}

/// Calls that wait for each other, one that is refused, and one that loses its lock.
async fn contend(locks: &Locker) -> Result<(), LockError> {
    let mut sales = JoinSet::new();
    for _ in 0..20 {
        let locks = locks.clone();
        sales.spawn(async move { sell(&locks, 7, Duration::from_millis(1)).await });
    }
    sales.join_all().await.into_iter().collect::<Result<(), LockError>>()?;
    let (sold, busy) = tokio::join!(sell(locks, 7, Duration::from_millis(500)), count(locks, 7));
    assert!(busy.is_err_and(|error| error.is_busy()));
    assert!(count(locks, 7).await.is_err_and(|error| error.is_lost()));
    drop(locks.lock("report:2026-11-22").label("report:{day}").acquire().await?);
    sold
}

/// Such calls without an end, for the dashboard to draw: a call that fails is counted, and drawn too.
async fn trade(locks: Locker) {
    for turn in 0.. {
        let mut sales = JoinSet::new();
        for sale in 0..turn % 20 {
            let locks = locks.clone();
            sales.spawn(async move { sell(&locks, 7, Duration::from_millis(5 * sale)).await });
        }
        if turn % 10 == 0 {
            drop(count(&locks, 7).await);
        }
        sales.join_all().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Before the first locker, so that the locker can describe its metrics. Without the naming there is no
    // `lockable_acquire_total`, and without the buckets there are none: the dashboard would draw nothing.
    let recorder = PrometheusBuilder::new().with_recommended_naming(true).set_buckets(&SECONDS)?;
    let exporter = recorder.install_recorder()?;
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://".to_owned());
    let locks = Locker::connect(&url).await?;

    let app = Router::new().route("/metrics", get(move || async move { exporter.render() }));
    let port = std::env::var("PORT").map_or(Ok(0), |port| port.parse())?;
    let bind = std::env::var("BIND").map_or(Ok(Ipv4Addr::LOCALHOST.into()), |bind| bind.parse())?;
    let listener = TcpListener::bind::<(IpAddr, u16)>((bind, port)).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr()?.port()));
    let service = axum::serve(listener, app).with_graceful_shutdown(stop_requested()?);
    let service = tokio::spawn(async move { service.await });

    contend(&locks).await?;
    let scrape = scrape(address).await?;
    println!("{scrape}");
    for name in names(include_str!("grafana.json")).chain(names(include_str!("alerts.yml"))) {
        assert!(scrape.contains(name), "{name} is drawn, or in an alert, and not there");
    }
    assert!(scrape.contains(r#"lock="stock:{sku}""#) && scrape.contains(r#"lock="report:{day}""#));
    if std::env::args().any(|argument| argument == "serve") {
        println!("serving http://{address}/metrics");
        let trade = tokio::spawn(trade(locks));
        service.await??;
        trade.abort();
        lockable_runtime::shutdown(Duration::from_secs(5)).await?;
    }
    Ok(())
}

/// Ready at ctrl-c, and at the SIGTERM with which Kubernetes, systemd and Docker stop a service.
fn stop_requested() -> std::io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// The metrics that a text names.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("lockable_"))
}

async fn scrape(address: SocketAddr) -> std::io::Result<String> {
    let mut connection = TcpStream::connect(address).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;
    let (_, body) = response.split_once("\r\n\r\n").unwrap_or_default();
    Ok(body.to_owned())
}
