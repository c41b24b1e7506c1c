//! A layer that gives every HTTP request its [`RequestId`]: for axum, tonic, hyper and everything
//! else that is made of [`tower`](https://docs.rs/tower) services.
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
use tower_layer::Layer;
use tower_service::Service;

use crate::request_id::{RequestId, RequestScope};

/// Makes each request of a service a [scope](RequestId::scope) of its own, and sends the client its id.
///
/// - The id is what the request's header says, [cleaned](RequestId::new); the first one if
///   the header occurs several times. Without the header, and when its value is no text, an id is
///   [generated](RequestId::generate).
/// - The service finds it by [`RequestId::current`] and in the request's extensions; the request's
///   header stays as it was sent. An id that is in the extensions already, from a layer further
///   outside, has priority.
/// - The response carries it in the same header, in place of what the service may have set there:
///   the client receives the id that the locks carry.
///
/// # What this does not guarantee
/// A streamed response body is sent after the scope has ended, and so is what the service spawned;
/// see [`RequestId`]. An error of the service, which is no response, carries no id.
///
/// # Examples
/// With another header than `Req-Id`:
/// ```
/// use http::HeaderName;
/// use lockable_runtime::tower::RequestIdLayer;
///
/// let layer = RequestIdLayer::new().header(HeaderName::from_static("x-request-id"));
/// ```
#[derive(Clone, Debug)]
pub struct RequestIdLayer {
    header: HeaderName,
}

impl RequestIdLayer {
    /// A layer for the header `Req-Id`.
    #[must_use]
    pub fn new() -> Self {
        Self { header: HeaderName::from_static(DEFAULT_HEADER) }
    }

    /// Takes the id from this header, and puts it there.
    #[must_use]
    pub fn header(mut self, header: HeaderName) -> Self {
        self.header = header;
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
        RequestIdService { inner, header: self.header.clone() }
    }
}

/// A service behind a [`RequestIdLayer`].
#[derive(Clone, Debug)]
pub struct RequestIdService<S> {
    inner: S,
    header: HeaderName,
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

    /// Calls the very service that was polled ready: a clone of it may not be.
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let id = request.extensions().get().cloned();
        let id = id.unwrap_or_else(|| sent(request.headers(), &self.header));
        request.extensions_mut().insert(id.clone());
        let future = id.sync_scope(|| self.inner.call(request));
        RequestIdFuture { future: id.scope(future), header: self.header.clone(), id }
    }
}

/// The id in a request's header, or a new one.
fn sent(headers: &HeaderMap, header: &HeaderName) -> RequestId {
    let text = headers.get(header).and_then(|value| str::from_utf8(value.as_bytes()).ok());
    text.map_or_else(RequestId::generate, RequestId::new)
}

pin_project! {
    /// The response of a [`RequestIdService`], when it is there.
    #[must_use = "nothing happens until it is polled"]
    pub struct RequestIdFuture<F> {
        #[pin]
        future: RequestScope<F>,
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

/// The name in the servlet filter that this project mirrors, in lower case as `http` needs it.
const DEFAULT_HEADER: &str = "req-id";

#[cfg(test)]
mod tests;
