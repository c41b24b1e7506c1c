//! Connections that are not opened: calls and checks say at which stage that ended, and why.

use std::path::Path;

use lockable_runtime::{LockErrorKind, Locker, LockerBuilder};
use lockable_tests::{Cluster, Server, ServerBuilder, Tls, wait};
use rstest::rstest;

use self::peers::{Peer, Reply, on_socket};
use crate::support::{CONNECT, connect_ample, patient, server_and_proxy};

mod peers;

const FULL: &str = "ERR max number of clients reached";

const TLS: &str = "if the server speaks TLS, write `rediss://`";

const NO_TLS: &str = "if the server speaks no TLS there, write `redis://`";

/// What a call and a check say of a connection that is not opened: all of these words.
async fn both_say(builder: LockerBuilder, words: &[&str]) {
    for text in both(builder).await {
        assert!(words.iter().all(|words| text.contains(words)), "{text}\n{words:?}");
    }
}

async fn both(builder: LockerBuilder) -> [String; 2] {
    let locker = builder.connect_deadline(CONNECT).connect_lazy().unwrap();
    let error = wait::ends(locker.lock("k").acquire()).await.unwrap_err();
    assert!(error.is_unavailable() && error.kind() != LockErrorKind::Refused, "{error}");
    let report = wait::ends(locker.check()).await;
    assert!(!report.is_ok(), "{report}");
    [error.to_string(), report.to_string()]
}

fn trusting(url: &str, tls: &Tls) -> LockerBuilder {
    let builder = patient(url);
    if url.starts_with("rediss") { builder.root_certificate(tls.roots()) } else { builder }
}

/// The URLs of one address in each scheme.
fn urls(address: &str, schemes: &[&str]) -> Vec<String> {
    let url = |scheme: &&str| {
        let name = if scheme.ends_with("sentinel") { "/mm" } else { "" };
        format!("{scheme}://{address}{name}")
    };
    schemes.iter().map(url).collect()
}

const PLAIN: [&str; 3] = ["redis", "redis-sentinel", "redis-cluster"];

const ENCRYPTED: [&str; 3] = ["rediss", "rediss-sentinel", "rediss-cluster"];

#[tokio::test]
async fn a_silent_port_leaves_the_login_without_answer() {
    let peer = Peer::start(Reply::None, None).await;
    for url in urls(&peer.address(), &PLAIN) {
        let words = ["connected, but no answer to the login", TLS];
        both_say(patient(&url), &words).await;
    }
}

#[tokio::test]
async fn a_silent_port_leaves_the_handshake_without_answer() {
    let (peer, tls) = (Peer::start(Reply::None, None).await, Tls::generate());
    for url in urls(&peer.address(), &ENCRYPTED) {
        both_say(trusting(&url, &tls), &["no answer to the TLS handshake", NO_TLS]).await;
    }
}

#[tokio::test]
async fn a_login_behind_tls_without_answer_is_named() {
    let tls = Tls::generate();
    let peer = Peer::start(Reply::None, Some(&tls)).await;
    for url in urls(&peer.address(), &ENCRYPTED) {
        both_say(trusting(&url, &tls), &["connected, but no answer to the login"]).await;
    }
}

#[tokio::test]
async fn a_silent_socket_has_no_advice_for_tls() {
    let folder = on_socket(Reply::None);
    for text in both(patient(&socket_url(folder.path()))).await {
        assert!(text.contains("connected, but no answer to the login"), "{text}");
        assert!(!text.contains("TLS"), "{text}");
    }
}

fn socket_url(folder: &Path) -> String {
    format!("unix://{}", folder.join("socket").display())
}

/// Two replies to the two commands that a client sends when it logs in without a password.
#[rstest]
#[case("redis", "HELLO")]
#[case("redis-sentinel", "SENTINEL GET-MASTER-ADDR-BY-NAME")]
#[case("redis-cluster", "CLUSTER SLOTS")]
#[tokio::test]
async fn the_first_command_without_answer_is_named(#[case] scheme: &str, #[case] command: &str) {
    let peer = Peer::start(Reply::Login, None).await;
    let [url] = &urls(&peer.address(), &[scheme])[..] else { panic!("it is one URL") };
    let [error, report] = both(patient(url)).await;
    let words = format!("logged in, but no answer to `{command}`");
    assert!(error.contains(&words), "{error}");
    // A check does the handshake with the nodes of the URL.
    assert!(report.contains("logged in, but no answer to `"), "{report}");
    assert!(!error.contains("rediss"), "{error}");
}

#[tokio::test]
async fn an_address_that_swallows_packets_is_named() {
    let (peer, tls) = (Peer::swallowing(), Tls::generate());
    let address = peer.address();
    for url in urls(&address, &[PLAIN, ENCRYPTED].concat()) {
        let words = format!("no TCP connection ({address}: no answer)");
        both_say(trusting(&url, &tls), &[&words]).await;
    }
}

#[tokio::test]
async fn a_host_that_is_not_resolved_is_named() {
    for url in urls("no-such-host.invalid", &PLAIN) {
        both_say(patient(&url), &["the host name `no-such-host.invalid` was not resolved"]).await;
    }
}

/// Such a server sends one error, and closes: the commands that arrive by then are lost.
#[tokio::test]
async fn what_a_server_says_before_it_closes_is_shown() {
    let tls = Tls::generate();
    let said = format!("the server answered `{FULL}` and closed the connection");
    for (peer, schemes) in [
        (Peer::start(Reply::Closing(FULL), None).await, PLAIN),
        (Peer::start(Reply::Closing(FULL), Some(&tls)).await, ENCRYPTED),
    ] {
        for url in urls(&peer.address(), &schemes) {
            both_say(trusting(&url, &tls), &[&said, "`maxclients`"]).await;
            both_say(trusting(&with_password(&url), &tls), &[&said, "`maxclients`"]).await;
        }
    }
    let folder = on_socket(Reply::Closing(FULL));
    both_say(patient(&socket_url(folder.path())), &[&said, "`maxclients`"]).await;
}

fn with_password(url: &str) -> String {
    url.replacen("://", "://:word@", 1)
}

/// Its words count as the answer to a command would.
#[tokio::test]
async fn a_server_that_closes_for_good_is_a_refusal() {
    let said = "DENIED Redis is running in protected mode";
    let peer = Peer::start(Reply::Closing(said), None).await;
    let url = format!("redis://{}", peer.address());
    let error = Locker::connect(&url).await.unwrap_err();
    assert!(error.kind() == LockErrorKind::Refused, "{error}");
    assert!(error.to_string().contains(said), "{error}");
}

#[rstest]
#[case::a_port(|server| server, |server: &Server| server.url())]
#[case::a_socket(|server: ServerBuilder| server.unix_socket(), |server: &Server| server.unix_url())]
#[tokio::test]
async fn a_full_server_says_so(
    #[case] build: fn(ServerBuilder) -> ServerBuilder,
    #[case] url: fn(&Server) -> String,
) {
    let server = build(Server::builder()).start();
    let admin = server.admin();
    let before = connect_ample(&url(&server)).await;
    admin.command::<()>(&["CONFIG", "SET", "maxclients", "1"]);
    admin.command::<u64>(&["CLIENT", "KILL", "TYPE", "normal"]);
    both_say(patient(&url(&server)), &[FULL, "`maxclients`"]).await;
    let error = before.lock("k").acquire().await.unwrap_err();
    assert!(error.is_unavailable() && error.to_string().contains(FULL), "{error}");
}

#[tokio::test]
async fn a_server_that_has_answered_gets_no_advice_for_its_url() {
    let (_server, proxy) = server_and_proxy();
    let builder = patient(&proxy.url()).command_deadline(2 * CONNECT).connect_deadline(CONNECT);
    let locker = builder.connect().await.unwrap();
    proxy.hold_replies();
    proxy.cut();
    let error = wait::ends(locker.lock("k").acquire()).await.unwrap_err().to_string();
    assert!(error.ends_with("connected, but no answer to the login"), "{error}");
}

/// Goal: one node that answers is enough to connect, although those before it hang.
/// Method: the deadlines are so long that a test which waits for one of those fails.
#[tokio::test]
async fn nodes_that_hang_hardly_delay_a_connection() {
    let cluster = Cluster::builder().replicas(0).steady().start();
    let masters: Vec<_> = cluster.masters().collect();
    for awake in &masters {
        let others = || masters.iter().filter(|master| master.addr() != awake.addr());
        others().for_each(|master| master.pause());
        drop(wait::ends(connect_ample(&cluster.url())).await);
        others().for_each(|master| master.resume());
    }
}
