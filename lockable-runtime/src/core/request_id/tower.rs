//! A layer that gives every HTTP request its [`RequestId`]: for axum, tonic, hyper and other
//! [`tower`](https://docs.rs/tower) services.
//!
//! ```
//! use axum::{Router, routing::get};
//! use lockable_runtime::RequestId;
//! use lockable_runtime::tower::RequestIdLayer;
//!
//! async fn handler() -> String {
//!     // Every lock that is acquired here carries this id in Redis.
//!     RequestId::current().map_or_else(String::new, |id| id.to_string())
//! }
//!
//! let app: Router = Router::new().route("/", get(handler)).layer(RequestIdLayer::new());
//! ```

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::str;
use std::task::{Context, Poll, ready};

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use pin_project_lite::pin_project;
use tokio::task::futures::TaskLocalFuture;
use tower_layer::Layer;
use tower_service::Service;

use crate::core::request_id::RequestId;

/// Makes each request of a service a [scope](RequestId::scope) of its own, and sends the client its id.
///
/// The id comes from the first of these that has one:
///
/// 1. the request's extensions, where a `RequestIdLayer` further outside puts it;
/// 2. the header `Req-Id`;
/// 3. the header `X-Request-Id`;
/// 4. [`RequestId::generate`].
///
/// [`header`](RequestIdLayer::header) names one header in place of both. The first value of a header is used, and a
/// value that is blank or no text is ignored. The text is [cleaned](RequestId::new).
///
/// - The service finds the id by [`RequestId::current`] and in the request's extensions; the request's headers are not
///   changed.
/// - The response carries the id in the header that it came in, or else in the first one, in place of any value of the
///   service.
///
/// # With tower-http
/// Put its `SetRequestIdLayer` outside of this layer, which reads the header that it writes. Name that header with
/// [`header`](RequestIdLayer::header): then a client's `Req-Id` does not take precedence, and the locks carry the same
/// id as the traces. `PropagateRequestIdLayer` does not change a header that the response has already.
///
/// # What this does not guarantee
/// A streamed response body is sent after the scope has ended, and spawned tasks are outside of it; see [`RequestId`].
/// An error of the service is no response, so it carries no id.
// What tower-http does, in the two implementations of `Service`:
// https://github.com/tower-rs/tower-http/blob/main/tower-http/src/request_id.rs
#[derive(Clone, Debug)]
pub struct RequestIdLayer {
    headers: Headers,
}

impl RequestIdLayer {
    /// Makes a layer for the headers `Req-Id` and `X-Request-Id`.
    #[must_use]
    pub fn new() -> Self {
        let [first, other] = DEFAULT_HEADERS.map(HeaderName::from_static);
        Self { headers: Headers { first, other: Some(other) } }
    }

    /// Takes the id from this header alone, and puts it into the response's.
    #[must_use]
    pub fn header(mut self, header: HeaderName) -> Self {
        self.headers = Headers { first: header, other: None };
        self
    }
}

impl Default for RequestIdLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for RequestIdLayer {
    type Service = RequestIdService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RequestIdService { inner, headers: self.headers.clone() }
    }
}

/// A service behind a [`RequestIdLayer`].
#[derive(Clone, Debug)]
pub struct RequestIdService<S> {
    inner: S,
    headers: Headers,
}

impl<S, B, R> Service<Request<B>> for RequestIdService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = RequestIdFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    /// Calls the service that was polled ready: a clone may not be.
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let (header, text) = self.headers.sent(request.headers());
        let made = || text.map_or_else(RequestId::generate, RequestId::new);
        let id = request.extensions().get().cloned().unwrap_or_else(made);
        let header = header.clone();
        request.extensions_mut().insert(id.clone());
        let future = id.sync_scope(|| self.inner.call(request));
        RequestIdFuture { future: id.around(future), header, id }
    }
}

#[derive(Clone, Debug)]
struct Headers {
    /// For the response to a request without an id.
    first: HeaderName,
    other: Option<HeaderName>,
}

impl Headers {
    /// The header for the response, and the request's text in it.
    fn sent<'a>(&self, request: &'a HeaderMap) -> (&HeaderName, Option<&'a str>) {
        let text_in = |name| str::from_utf8(request.get(name)?.as_bytes()).ok();
        let mut names = [Some(&self.first), self.other.as_ref()].into_iter().flatten();
        let found = names.find_map(|name| {
            let text = text_in(name).filter(|text| !text.trim().is_empty())?;
            Some((name, Some(text)))
        });
        found.unwrap_or((&self.first, None))
    }
}

pin_project! {
    /// The future of a response.
    #[must_use = "nothing happens until it is polled"]
    pub struct RequestIdFuture<F> {
        #[pin]
        future: TaskLocalFuture<RequestId, F>,
        header: HeaderName,
        id: RequestId,
    }
}

impl<F, R, E> Future for RequestIdFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.future.poll(cx))?;
        // Printable ASCII is always a header's value.
        if let Ok(value) = HeaderValue::from_str(this.id.as_str()) {
            response.headers_mut().insert(this.header.clone(), value);
        }
        Poll::Ready(Ok(response))
    }
}

impl<F> fmt::Debug for RequestIdFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestIdFuture").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The name in the servlet filter that this project mirrors, and the most common other; in lower case for `http`.
const DEFAULT_HEADERS: [&str; 2] = ["req-id", "x-request-id"];

#[cfg(test)]
mod tests;
