//! What Sentinels publish about a new primary.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use redis::{Client, Msg, RedisResult};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The messages of `+switch-master` from several Sentinels, from the moment at which this value was made.
///
/// Each Sentinel has a thread that listens, which ends with the Sentinel.
#[derive(Debug)]
pub struct Switches(UnboundedReceiver<SocketAddr>);

impl Switches {
    /// The new address of the next switch. The Sentinels publish a switch one after the other, so the same
    /// one comes from each.
    ///
    /// # Cancel safety
    ///
    /// A message is taken only by the call that returns it.
    pub async fn next(&mut self) -> SocketAddr {
        let next = tokio::time::timeout(LIMIT, self.0.recv()).await;
        next.expect("a switch within the limit").expect("a Sentinel is left")
    }

    pub(super) fn of(urls: impl Iterator<Item = String>) -> Self {
        let (switches, receiver) = unbounded_channel();
        for url in urls {
            let (listens, is_listening) = channel();
            let switches = switches.clone();
            thread::spawn(move || drop(listen(&url, &listens, &switches)));
            is_listening.recv().expect("the Sentinel answers");
        }
        Self(receiver)
    }
}

/// Ends with the connection, or when no one waits for the next message.
fn listen(
    url: &str,
    listens: &Sender<()>,
    switches: &UnboundedSender<SocketAddr>,
) -> RedisResult<()> {
    let mut connection = Client::open(url)?.get_connection()?;
    let mut subscription = connection.as_pubsub();
    subscription.subscribe("+switch-master")?;
    listens.send(()).expect("the other thread waits");
    while let Some(address) = new_address(&subscription.get_message()?) {
        if switches.send(address).is_err() {
            break;
        }
    }
    Ok(())
}

/// The text is the name, the old address and the new one.
fn new_address(message: &Msg) -> Option<SocketAddr> {
    let text: String = message.get_payload().ok()?;
    let [_, _, _, ip, port] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
    Some(SocketAddr::new(ip.parse().ok()?, port.parse().ok()?))
}

/// Sentinels that did not run for seconds, or that find no replica good enough, need several attempts; some never
/// succeed.
const LIMIT: Duration = Duration::from_secs(180);
