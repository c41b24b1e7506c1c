//! How does one of several replicas lead, and how does Kubernetes send requests to the leader alone?
//!
//! `lead` campaigns in the background, and `/ready` answers 200 while this replica leads. A replica that is asked to stop
//! resigns, so another one leads after milliseconds; after a crash one does when the lease ends. `leader.yaml` beside
//! this file is the manifest. Such a probe needs its update strategy: the usual one waits for a new replica that is ready.
//!
//! In this folder, run it with `cargo run --example leader`: it is two replicas then, probes them, and ends. With `PORT`
//! it is one, as in the manifest, until it gets a SIGTERM. Set `LOCKABLE_URL=redis://127.0.0.1:6379` to keep the lock in
//! Redis. Watch for the second replica, which leads when the first one shuts down.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use lockable_runtime::{Leadership, Leading, LockError, Locker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// One replica of the service.
struct Replica {
    name: &'static str,
    probe: Leadership,
    address: SocketAddr,
    campaigning: JoinHandle<Result<(), LockError>>,
}

impl Replica {
    async fn start(name: &'static str, url: &str, port: u16) -> Result<Self, Box<dyn Error>> {
        let locks = Locker::connect(url).await?;
        let request = locks.lock("example:leader").expire(Duration::from_secs(10));
        let leading: Leading<()> = request.lead(move |lease| async move {
            println!("{name} leads, with the fencing token {}", lease.fencing_token());
            // What only the leader does; it is dropped when the lease is lost.
            std::future::pending::<()>().await;
        });
        let probe = leading.watch();
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?;
        let address = (Ipv4Addr::LOCALHOST, listener.local_addr()?.port()).into();
        tokio::spawn(serve(listener, probe.clone()));
        Ok(Self { name, probe, address, campaigning: tokio::spawn(leading) })
    }

    /// The campaigns go on until then: their end would say why this replica never leads again.
    async fn leads(&mut self) {
        while !self.probe.is_leader() {
            tokio::select! {
                _ = self.probe.changed() => {}
                ended = &mut self.campaigning => panic!("the campaigns have ended: {ended:?}"),
            }
        }
    }

    /// Resigns: the body is dropped, then the lock is released.
    async fn shut_down(&self) -> Result<(), LockError> {
        println!("{} shuts down", self.name);
        self.campaigning.abort();
        lockable_runtime::shutdown(Duration::from_secs(5)).await
    }

    /// What Kubernetes gets.
    async fn ready(&self) -> Result<bool, Box<dyn Error>> {
        let mut connection = TcpStream::connect(self.address).await?;
        connection.write_all(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n").await?;
        let mut response = String::new();
        connection.read_to_string(&mut response).await?;
        let status = response.lines().next().unwrap_or_default();
        println!("{}: GET /ready: {status}", self.name);
        Ok(status.contains(" 200 "))
    }
}

/// `/live` is 200 while the process answers, `/ready` while it leads.
async fn serve(listener: TcpListener, probe: Leadership) -> std::io::Result<()> {
    loop {
        let (mut connection, _) = listener.accept().await?;
        let probe = probe.clone();
        tokio::spawn(async move {
            // A probe's request is one small packet.
            let mut request = [0; 1024];
            let length = connection.read(&mut request).await?;
            let status = match &request[..length] {
                request if request.starts_with(b"GET /live ") => "200 OK",
                request if !request.starts_with(b"GET /ready ") => "404 Not Found",
                _ if probe.is_leader() => "200 OK",
                _ => "503 Service Unavailable",
            };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n");
            connection.write_all(format!("{head}\r\n").as_bytes()).await
        });
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("LOCKABLE_URL").unwrap_or_else(|_| "memory://leader".to_owned());
    if let Ok(port) = std::env::var("PORT") {
        let mut terminate = signal(SignalKind::terminate())?;
        let replica = Replica::start("this replica", &url, port.parse()?).await?;
        terminate.recv().await;
        return Ok(replica.shut_down().await?);
    }
    let mut first = Replica::start("the first replica", &url, 0).await?;
    first.leads().await;
    let mut second = Replica::start("the second replica", &url, 0).await?;
    assert!(first.ready().await? && !second.ready().await?);

    first.shut_down().await?;
    second.leads().await;
    assert!(!first.ready().await? && second.ready().await?);
    Ok(second.shut_down().await?)
}
