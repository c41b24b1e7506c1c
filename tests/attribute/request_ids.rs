//! The request id in the value of a lock, for every kind of call and behind the layer for services.

use std::convert::Infallible;
use std::future::{IntoFuture, pending};
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::routing::get;
use lockable_runtime::tower::RequestIdLayer;
use lockable_runtime::{LockGuard, Locker, RequestId, distributed_lock};
use lockable_tests::{Admin, Server, wait};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio::task::spawn_blocking;

use crate::support::{BoxFuture, LIMIT, LONG, patient, pause};

/// A server, a locker for it, and a look past the locker.
#[derive(Clone)]
struct Shop {
    _server: Arc<Server>,
    admin: Arc<Admin>,
    locks: Locker,
    /// Passes when two calls wait here.
    meeting: Arc<Barrier>,
}

impl Shop {
    fn open() -> Self {
        let server = Server::start();
        Self {
            admin: Arc::new(server.admin()),
            locks: patient(&server),
            meeting: Arc::new(Barrier::new(2)),
            _server: Arc::new(server),
        }
    }

    /// The id in the lock's value, or nothing.
    fn id_in(&self, key: &str) -> String {
        let value = self.admin.get(&format!("disLock:{key}")).expect("the lock is held");
        let (acquisition, id) = value.split_once(' ').unwrap_or((&value, ""));
        assert_eq!(acquisition.find('.'), Some(16), "{value}");
        id.to_owned()
    }

    fn is_free(&self, key: &str) -> bool {
        self.admin.get(&format!("disLock:{key}")).is_none()
    }

    #[distributed_lock(key = "async", locker = self.locks)]
    async fn asynchronous(&self) -> Option<String> {
        pause().await;
        Some(self.id_in("async"))
    }

    #[distributed_lock(key = "boxed", locker = self.locks)]
    fn boxed(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { Some(self.id_in("boxed")) })
    }

    #[distributed_lock(key = "sync", locker = self.locks)]
    fn synchronous(&self) -> Option<String> {
        Some(self.id_in("sync"))
    }

    #[distributed_lock(key = "waiting", locker = self.locks, wait = LONG)]
    async fn waiting(&self) -> Option<String> {
        pause().await;
        Some(self.id_in("waiting"))
    }

    #[distributed_lock(key = "waiting", locker = self.locks, wait = LONG, blocking)]
    fn waiting_sync(&self) -> Option<String> {
        Some(self.id_in("waiting"))
    }

    async fn by_hand(&self) -> String {
        let guard = self.locks.lock("by hand").acquire().await.unwrap();
        let id = self.id_in("by hand");
        guard.release().await.unwrap();
        id
    }

    /// What the calls of every kind find, and that their locks are free again.
    async fn all(&self) -> [String; 5] {
        let ids = [
            self.asynchronous().await.unwrap(),
            self.boxed().await.unwrap(),
            self.in_a_trait().await.unwrap(),
            self.synchronous().unwrap(),
            self.by_hand().await,
        ];
        assert_eq!(self.admin.keys("disLock:*"), [""; 0]);
        ids
    }
}

#[async_trait]
trait Job {
    async fn in_a_trait(&self) -> Option<String>;
}

#[async_trait]
impl Job for Shop {
    #[distributed_lock(key = "trait", locker = self.locks)]
    async fn in_a_trait(&self) -> Option<String> {
        Some(self.id_in("trait"))
    }
}

#[tokio::test]
async fn every_call_in_a_scope_leaves_the_id() {
    let shop = Shop::open();
    assert_eq!(shop.all().await, [""; 5]);
    assert_eq!(RequestId::new("checkout 7").scope(shop.all()).await, ["checkout 7"; 5]);
    assert_eq!(shop.all().await, [""; 5]);
}

/// Goal: calls that had to wait leave their id too. Method: each waits alone, for a holder that
/// continues when the server has the call in its queue.
#[tokio::test]
async fn a_call_that_waited_leaves_the_id() {
    let shop = Shop::open();
    let hold = async || {
        let guard = RequestId::new("other").scope(shop.locks.lock("waiting").acquire());
        let (guard, admin) = (guard.await.unwrap(), Arc::clone(&shop.admin));
        drop(tokio::spawn(async move {
            let is_queued = move || !admin.keys("lockable:queue:*").is_empty();
            spawn_blocking(move || wait::until(LIMIT, is_queued)).await.unwrap();
            guard.release().await.unwrap();
        }));
    };
    hold().await;
    assert_eq!(RequestId::new("a").scope(shop.waiting()).await.as_deref(), Some("a"));
    hold().await;
    let there = shop.clone();
    let sync = spawn_blocking(move || RequestId::new("b").sync_scope(|| there.waiting_sync()));
    assert_eq!(sync.await.unwrap().as_deref(), Some("b"));
    hold().await;
    assert_eq!(shop.waiting().await.as_deref(), Some(""));
    assert!(shop.is_free("waiting"));
}

#[tokio::test]
async fn the_acquiring_scopes_id_counts_before_the_askers() {
    let shop = Shop::open();
    let (a, b) = (RequestId::new("a"), RequestId::new("b"));
    let ask = || shop.locks.lock("k");
    let id_of = async |acquired: LockGuard| {
        let id = shop.id_in("k");
        acquired.release().await.unwrap();
        id
    };
    assert_eq!(id_of(a.scope(ask().acquire()).await.unwrap()).await, "a");
    assert_eq!(id_of(b.scope(a.sync_scope(ask).acquire()).await.unwrap()).await, "b");
    let elsewhere = tokio::spawn(a.sync_scope(ask).acquire());
    assert_eq!(id_of(elsewhere.await.unwrap().unwrap()).await, "a");
    assert_eq!(a.scope(ask().run(async { shop.id_in("k") })).await.unwrap(), "a");
}

/// A locked handler: two calls of it meet inside of their locks, then each returns its
/// lock's id.
#[distributed_lock(key = "{name}", locker = shop.locks, on_busy = "busy".into(), on_error = |e| e.to_string())]
async fn meet(State(shop): State<Shop>, Path(name): Path<String>) -> String {
    shop.meeting.wait().await;
    shop.id_in(&name)
}

#[distributed_lock(key = "k", locker = shop.locks, on_busy = "busy".into(), on_error = |e| e.to_string())]
async fn current(State(shop): State<Shop>) -> String {
    pause().await;
    shop.id_in("k")
}

#[distributed_lock(key = "endless", locker = shop.locks, on_busy = "busy".into(), on_error = |e| e.to_string())]
async fn endless(State(shop): State<Shop>) -> String {
    let never: Infallible = pending().await;
    match never {}
}

/// Serves the shop on this thread, on a port of its own.
async fn serve(shop: &Shop) -> SocketAddr {
    let app = Router::new()
        .route("/meet/{name}", get(meet))
        .route("/current", get(current))
        .route("/endless", get(endless))
        .route("/header", get(async |headers: HeaderMap| headers["req-id"].as_bytes().to_vec()))
        .layer(RequestIdLayer::new())
        .with_state(shop.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(tokio::spawn(axum::serve(listener, app).into_future()));
    address
}

/// One connection to the service.
struct Client(BufReader<TcpStream>);

/// The status line, the id in the header and the body.
type Answer = (String, String, String);

impl Client {
    async fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    async fn send(&mut self, path: &str, headers: &[u8]) {
        let start = format!("GET {path} HTTP/1.1\r\nHost: shop\r\n");
        let request = [start.as_bytes(), headers, b"\r\n"].concat();
        self.0.write_all(&request).await.unwrap();
    }

    async fn answer(&mut self) -> Answer {
        let status = self.line().await;
        let (mut id, mut length) = (String::new(), 0);
        loop {
            match self.line().await.split_once(": ") {
                Some(("req-id", value)) => id += value,
                Some(("content-length", value)) => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        (status, id, String::from_utf8(body).unwrap())
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// The id that the response and the lock agree about.
    async fn ask(&mut self, path: &str, headers: &[u8]) -> String {
        self.send(path, headers).await;
        let (_, current, held) = self.answer().await;
        assert_eq!(current, held);
        held
    }
}

fn is_generated(id: &str) -> bool {
    id.find('-') == Some(16)
}

#[tokio::test]
async fn concurrent_requests_of_a_service_have_their_own_ids() {
    let address = serve(&Shop::open()).await;
    let (mut first, mut second) = tokio::join!(Client::connect(address), Client::connect(address));
    for _ in 0..3 {
        let ids = tokio::join!(
            first.ask("/meet/first", b"Req-Id: a\r\n"),
            second.ask("/meet/second", b"Req-Id: b\r\n"),
        );
        assert_eq!(ids, ("a".to_owned(), "b".to_owned()));
    }
    let (a, b) = tokio::join!(first.ask("/meet/1", b"req-id: a\r\n"), second.ask("/meet/2", b""));
    assert!(a == "a" && is_generated(&b), "{a}, {b}");
}

#[tokio::test]
async fn requests_of_one_connection_share_no_id() {
    let mut client = Client::connect(serve(&Shop::open()).await).await;
    assert_eq!(client.ask("/current", b"Req-Id: a\r\n").await, "a");
    let (first, second) = (client.ask("/current", b"").await, client.ask("/current", b"").await);
    assert!(is_generated(&first) && is_generated(&second) && first != second);
    assert_eq!(client.ask("/current", b"Req-Id: b\r\n").await, "b");
}

#[tokio::test]
async fn a_dropped_request_leaves_no_lock_or_id() {
    let shop = Shop::open();
    let address = serve(&shop).await;
    let mut client = Client::connect(address).await;
    client.send("/endless", b"Req-Id: gone\r\n").await;
    wait::until_async(LIMIT, async || !shop.is_free("endless")).await;
    assert_eq!(shop.id_in("endless"), "gone");
    drop(client);
    wait::until_async(LIMIT, async || shop.is_free("endless")).await;
    assert_eq!(RequestId::current(), None);
    assert!(is_generated(&Client::connect(address).await.ask("/current", b"").await));
}

#[tokio::test]
async fn a_clients_id_is_cleaned_before_it_is_stored() {
    let mut client = Client::connect(serve(&Shop::open()).await).await;
    assert_eq!(client.ask("/current", "Req-Id:  caf\u{e9} 7 \r\n".as_bytes()).await, "caf_ 7");
    assert_eq!(client.ask("/current", b"Req-Id: a\tb\r\n").await, "a_b");
    assert_eq!(client.ask("/current", b"Req-Id: a\r\nSet-Cookie: b\r\n").await, "a");
    let long = [b"Req-Id: ", &[b'a'; 1000][..], b"\r\n"].concat();
    assert_eq!(client.ask("/current", &long).await, "a".repeat(128));
    for nothing in [&b"Req-Id:\r\n"[..], b"Req-Id: \xff\xfe\r\n", b"Req-Id: a\xe9\r\n"] {
        assert!(is_generated(&client.ask("/current", nothing).await));
    }
}

#[tokio::test]
async fn a_two_line_header_never_reaches_the_service() {
    let address = serve(&Shop::open()).await;
    for header in [&b"Req-Id: a\r\n b\r\n"[..], b"Req-Id: a\rb\r\n", b"Req-Id: a\0b\r\n"] {
        let mut client = Client::connect(address).await;
        client.send("/current", header).await;
        let (status, id, body) = client.answer().await;
        assert_eq!((status.as_str(), id + &body), ("HTTP/1.1 400 Bad Request", String::new()));
    }
}

#[tokio::test]
async fn the_service_sees_the_header_as_sent() {
    let mut client = Client::connect(serve(&Shop::open()).await).await;
    client.send("/header", b"Req-Id: a\tb\r\n").await;
    let (_, id, seen) = client.answer().await;
    assert_eq!((id.as_str(), seen.as_str()), ("a_b", "a\tb"));
}
