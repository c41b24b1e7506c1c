use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use tokio::task::yield_now;

use super::*;

const DEFAULT_HEADER: &str = DEFAULT_HEADERS[0];

type Seen = Arc<Mutex<Vec<String>>>;

fn current() -> String {
    RequestId::current().map_or_else(String::new, |id| id.to_string())
}

/// Notes the current id in its call, at each poll and when it is dropped.
#[derive(Clone)]
struct Notes(Seen);

impl Service<Request<()>> for Notes {
    type Response = Response<RequestId>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let note = Note(Arc::clone(&self.0));
        note.take("call");
        let found = request.extensions().get::<RequestId>().unwrap().clone();
        Box::pin(async move {
            note.take("first");
            yield_now().await;
            note.take("second");
            let mut response = Response::new(found);
            response.headers_mut().insert(DEFAULT_HEADER, HeaderValue::from_static("handler's"));
            response.headers_mut().append(DEFAULT_HEADER, HeaderValue::from_static("more"));
            Ok(response)
        })
    }
}

struct Note(Seen);

impl Note {
    fn take(&self, what: &str) {
        self.0.lock().unwrap().push(format!("{what} {}", current()));
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        self.take("drop");
    }
}

fn service() -> (RequestIdService<Notes>, Seen) {
    let seen = Seen::default();
    (RequestIdLayer::new().layer(Notes(Arc::clone(&seen))), seen)
}

fn request(id: &[u8]) -> Request<()> {
    let value = HeaderValue::from_bytes(id).unwrap();
    Request::builder().header("Req-Id", value).body(()).unwrap()
}

fn taken(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut seen.lock().unwrap())
}

async fn call(request: Request<()>) -> String {
    let response = service().0.call(request).await.unwrap();
    let headers: Vec<_> = response.headers().get_all(DEFAULT_HEADER).iter().collect();
    assert_eq!(headers, [response.body().as_str()]);
    response.into_body().to_string()
}

fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn the_id_is_current_during_the_whole_call() {
    let (mut service, seen) = service();
    service.call(request(b"a")).await.unwrap();
    assert_eq!(taken(&seen), ["call a", "first a", "second a", "drop a"]);
    assert_eq!(current(), "");
}

#[tokio::test]
async fn the_id_comes_from_the_header_and_is_cleaned() {
    assert_eq!(call(request(b"checkout-7")).await, "checkout-7");
    assert_eq!(call(request("caf\u{e9} ".as_bytes())).await, "caf_");
    assert_eq!(call(request(&[b'a'; 1000])).await, "a".repeat(128));
}

#[tokio::test]
async fn the_first_of_several_headers_counts() {
    let mut request = request(b"a");
    request.headers_mut().append(DEFAULT_HEADER, HeaderValue::from_static("b"));
    assert_eq!(call(request).await, "a");
}

#[tokio::test]
async fn an_id_is_generated_without_a_readable_header() {
    let mut ids = Vec::new();
    for request in [Request::new(()), request(b""), request(b" \t"), request(b"a\xff")] {
        ids.push(call(request).await);
    }
    assert!(ids.iter().all(|id| id.split_once('-').unwrap().0.len() == 16), "{ids:?}");
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

async fn answered(layer: RequestIdLayer, headers: &[(&'static str, &'static [u8])]) -> String {
    let mut request = Request::new(());
    for &(name, value) in headers {
        request.headers_mut().append(name, HeaderValue::from_bytes(value).unwrap());
    }
    let response = layer.layer(Plain).call(request).await.unwrap();
    let shown =
        |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
    response.headers().iter().map(shown).collect::<Vec<_>>().join(", ")
}

struct Plain;

impl Service<Request<()>> for Plain {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(())))
    }
}

#[tokio::test]
async fn the_response_has_the_id_in_its_header() {
    for (name, expected) in [("req-id", "req-id: a"), ("x-request-id", "x-request-id: a")] {
        assert_eq!(answered(RequestIdLayer::new(), &[(name, b"a")]).await, expected);
    }
}

#[tokio::test]
async fn req_id_comes_first_where_it_is_a_text() {
    let first: [(&[u8], _); 3] =
        [(b"a", "req-id: a"), (b" ", "x-request-id: b"), (b"a\xff", "x-request-id: b")];
    for (value, expected) in first {
        let headers = [("x-request-id", &b"b"[..]), ("req-id", value)];
        assert_eq!(answered(RequestIdLayer::new(), &headers).await, expected);
    }
}

#[tokio::test]
async fn a_generated_id_is_in_the_first_header() {
    for headers in [&[][..], &[("x-request-id", &b""[..])]] {
        assert!(answered(RequestIdLayer::new(), headers).await.starts_with("req-id: "));
    }
}

#[tokio::test]
async fn a_header_that_is_named_is_the_only_one() {
    let layer = RequestIdLayer::new().header(HeaderName::from_static("trace"));
    let headers = [("req-id", &b"a"[..]), ("x-request-id", b"b")];
    assert!(answered(layer.clone(), &headers).await.starts_with("trace: "));
    assert_eq!(answered(layer, &[("trace", &b"c"[..]), headers[0]]).await, "trace: c");
}

#[tokio::test]
async fn two_layers_agree_on_the_outer_id() {
    let seen = Seen::default();
    let inner = RequestIdLayer::new().layer(Notes(Arc::clone(&seen)));
    let response = RequestIdLayer::new().layer(inner).call(Request::new(())).await.unwrap();
    let id = response.headers()[DEFAULT_HEADER].to_str().unwrap();
    assert_eq!(taken(&seen)[0], format!("call {id}"));
}

#[tokio::test]
async fn requests_that_take_turns_keep_their_ids() {
    let (mut service, seen) = service();
    let (a, b) = (service.call(request(b"a")), service.call(request(b"b")));
    let (a, b) = tokio::join!(biased; a, b);
    assert_eq!((a.unwrap().body().as_str(), b.unwrap().body().as_str()), ("a", "b"));
    let notes = taken(&seen);
    assert_eq!(notes[..4], ["call a", "call b", "first a", "first b"]);
    assert_eq!(notes[4..], ["second a", "drop a", "second b", "drop b"]);
}

#[test]
fn a_request_that_is_dropped_midway_leaves_nothing() {
    let (mut service, seen) = service();
    let mut dropped = Box::pin(service.call(request(b"a")));
    assert!(poll_once(dropped.as_mut()).is_pending());
    assert_eq!(current(), "");
    drop(dropped);
    assert_eq!(current(), "");
    let mut next = pin!(service.call(Request::new(())));
    assert!(poll_once(next.as_mut()).is_pending());
    let notes = taken(&seen);
    assert_eq!(notes[..3], ["call a", "first a", "drop a"]);
    assert!(!notes[3..].iter().any(|note| note.ends_with(" a")), "{notes:?}");
}

/// Ready only where it was polled, as a service is that waits for a permit.
#[derive(Default)]
struct Permit(AtomicBool);

impl Clone for Permit {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<()>> for Permit {
    type Response = Response<()>;
    type Error = &'static str;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let is_ready = self.0.swap(false, Ordering::Relaxed);
        ready(if is_ready { Ok(Response::new(())) } else { Err("not ready") })
    }
}

#[tokio::test]
async fn the_service_that_was_ready_is_called() {
    let mut service = RequestIdLayer::new().layer(Permit::default());
    let ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
    assert_eq!(ready, Poll::Ready(Ok(())));
    let mut copy = service.clone();
    assert!(service.call(request(b"a")).await.is_ok());
    // Errors pass through unchanged.
    assert_eq!(copy.call(request(b"a")).await.unwrap_err(), "not ready");
}

#[test]
fn the_futures_go_where_those_of_the_service_go() {
    fn sendable<T: Send>(_: &T) {}
    let (mut service, _) = service();
    sendable(&service);
    sendable(&service.call(request(b"a")));
}
