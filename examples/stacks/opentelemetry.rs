//! How do the spans of a lock get into OpenTelemetry?
//!
//! The locks log through `tracing`, and `tracing-opentelemetry` makes OpenTelemetry's spans of that. Here they are
//! printed; a service uses `opentelemetry-otlp` for a collector, Jaeger or Tempo, and `with_batch_exporter`.
//!
//! Run it with `LOCKABLE_URL=redis://127.0.0.1:6379 cargo run --bin opentelemetry`. Watch for `acquire`, which lasts as
//! long as the call waited, and for `hold`, whose child is the body's own span; both are children of `checkout`.

use std::error::Error;
use std::time::Duration;

use lockable_runtime::{LockError, Locker, distributed_lock};
use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use opentelemetry_stdout::SpanExporter;
use tracing::{Level, instrument};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// A request, as a web framework's own span would be.
#[instrument(skip(locks))]
async fn checkout(locks: &Locker, order: u64) -> Result<(), LockError> {
    settle(locks, order).await
}

#[distributed_lock(key = "order:{order}", expire = 10, wait = "5s", locker = locks)]
async fn settle(locks: &Locker, order: u64) -> Result<(), LockError> {
    charge().await;
    Ok(())
}

#[instrument]
async fn charge() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// The locks' spans are at debug level; only what has a filter that lets them in gets them.
fn export_spans() -> SdkTracerProvider {
    let provider = SdkTracerProvider::builder()
        .with_resource(Resource::builder_empty().with_service_name("shop").build())
        .with_simple_exporter(SpanExporter::default())
        .build();
    let wanted = Targets::new().with_default(Level::INFO).with_target("lockable", Level::DEBUG);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    tracing_subscriber::registry().with(layer.with_filter(wanted)).init();
    provider
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Ok(url) = std::env::var("LOCKABLE_URL") else {
        println!(
            "LOCKABLE_URL is not set. With it, this program has two calls lock one order, and prints the spans"
        );
        println!("of OpenTelemetry that come of it: `acquire`, `wait`, `hold`, `release`.");
        return Ok(());
    };
    let provider = export_spans();
    let locks = Locker::connect(&url).await?;
    // In production each is a process.
    let other = Locker::connect(&url).await?;
    tokio::try_join!(checkout(&locks, 7), checkout(&other, 7))?;
    lockable_runtime::shutdown(Duration::from_secs(5)).await?;
    provider.shutdown()?;
    Ok(())
}
