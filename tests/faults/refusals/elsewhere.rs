//! URLs that lead to something else than a server for locks: the error has the URL to write.

use lockable_runtime::LockErrorKind;
use lockable_runtime::{Credentials, LockError, Secret};
use lockable_tests::{Sentinels, Server, Tls, cluster, wait};

use super::newcomer_to;
use crate::support::{
    LIMIT, LONG, acl_line, acl_rights, ample, connect_ample, everything, sentinel_of,
};

/// What no error shows.
const CANARY: &str = "s3cr3t-w0rd";

/// The error of a locker that cannot be made: a call that is refused waits for nothing.
async fn refusal(url: &str) -> LockError {
    let error = wait::ends(ample(url).connect()).await.unwrap_err();
    assert!(error.kind() == LockErrorKind::Refused, "{error:?}");
    assert!(!everything(&error).contains(CANARY), "{}", everything(&error));
    error
}

/// The URL that the error says to write.
fn url_in(error: &LockError) -> String {
    let text = error.to_string();
    let (_, rest) = text.split_once("write `").unwrap_or_else(|| panic!("no URL in: {text}"));
    rest.split('`').next().unwrap().to_owned()
}

async fn locks(url: &str) {
    connect_ample(url).await.lock("k").try_run(async {}).await.unwrap();
}

#[tokio::test]
async fn a_sentinel_is_refused_with_the_url_to_write() {
    let server = Server::start();
    let sentinel = sentinel_of(server.addr(), &["mm"]).start();
    for (database, written) in [("", ""), ("/0", ""), ("/5", "/5")] {
        let error = refusal(&format!("{}{database}", sentinel.url())).await;
        let url = format!("redis-sentinel://{}/mm{written}", sentinel.addr());
        assert!(error.to_string().contains("this is a Sentinel"), "{error}");
        assert_eq!(url_in(&error), url);
        locks(&url).await;
    }
}

/// Goal: the usual mistake is found, in which the URL of a server has the address of a Sentinel.
/// Method: the Sentinel has another password, or none, and so it refuses the one of the URL.
#[tokio::test]
async fn a_sentinel_is_found_behind_a_servers_password() {
    let server = Server::builder().password(CANARY).user("app", "on >s3cr3t-w0rd +@all").start();
    let sentinel = sentinel_of(server.addr(), &["mm"]).start();
    for user in ["", "app"] {
        for database in [0, 5] {
            let error = refusal(&sentinel.url_with(user, CANARY, database)).await;
            assert!(url_in(&error).starts_with("redis-sentinel://"), "{error}");
            assert!(error.to_string().contains("`sentinel_password`"), "{error}");
        }
    }
    locks(&format!("redis-sentinel://:{CANARY}@{}/mm", sentinel.addr())).await;
}

#[tokio::test]
async fn a_sentinel_with_a_password_is_refused_in_words() {
    let server = Server::start();
    let sentinel = sentinel_of(server.addr(), &["mm"]).password(CANARY).start();
    for database in [0, 5] {
        let error = refusal(&sentinel.url_with("", CANARY, database)).await;
        assert!(url_in(&error).starts_with("redis-sentinel://"), "{error}");
    }
    let error = refusal(&sentinel.url()).await.to_string();
    assert!(error.contains("user and password"), "{error}");
    // Most servers say first that they have no databases, and Valkey 9 that they want a password.
    let error = refusal(&format!("{}/5", sentinel.url())).await.to_string();
    let words = ["if it is a Sentinel, write `redis-sentinel://", "user and password"];
    assert!(words.iter().any(|words| error.contains(words)), "{error}");
}

#[tokio::test]
async fn a_token_that_a_sentinel_refuses_is_not_shown() {
    let server = Server::start();
    let sentinel = sentinel_of(server.addr(), &["mm"]).start();
    let token = || async { Ok::<_, LockError>(Credentials::new("app", CANARY)) };
    let error =
        ample(&sentinel.url()).credentials(Secret::from_fn(token)).connect().await.unwrap_err();
    assert!(
        error.kind() == LockErrorKind::Refused && !everything(&error).contains(CANARY),
        "{error:?}"
    );
    assert!(url_in(&error).starts_with("redis-sentinel://"), "{error}");
}

#[tokio::test]
async fn a_sentinel_over_tls_is_refused_with_its_url() {
    let (tls, server) = (Tls::generate(), Server::start());
    let sentinel = sentinel_of(server.addr(), &["mm"]).tls(&tls).start();
    for database in ["", "/5"] {
        let builder = ample(&format!("{}{database}", sentinel.tls_url()));
        let connecting = builder.root_certificate(tls.roots()).connect();
        let error = wait::ends(connecting).await.unwrap_err();
        let url = format!("{}/mm{database}", sentinel.tls_url());
        assert_eq!(url_in(&error), url.replace("rediss://", "rediss-sentinel://"));
    }
}

#[tokio::test]
async fn a_replica_is_refused_with_its_primarys_url() {
    let (primary, replica) = (Server::start(), Server::start());
    replica.admin().follow(primary.addr());
    let error = refusal(&format!("{}/5", replica.url())).await;
    assert!(error.to_string().contains("this server is a replica"), "{error}");
    assert_eq!(url_in(&error), format!("{}/5", primary.url()));
    locks(&url_in(&error)).await;
}

#[tokio::test]
async fn a_replica_that_may_not_be_asked_is_refused() {
    let rules = format!("on >{CANARY} {}", acl_rights().join(" "));
    let replica = Server::builder().user("app", &rules).start();
    let primary = Server::start();
    replica.admin().follow(primary.addr());
    let error = refusal(&replica.url_with(acl_line()[2], CANARY, 0)).await.to_string();
    assert!(error.contains("is a replica") && error.contains("address of its primary"), "{error}");
}

#[tokio::test]
async fn a_node_of_several_is_refused_with_its_clusters_url() {
    let builder = Server::builder().password(CANARY);
    for node in cluster::start(&builder, 2) {
        let error = refusal(&node.url_with("", CANARY, 0)).await;
        assert!(error.to_string().contains("one node of a cluster"), "{error}");
        assert_eq!(url_in(&error), format!("redis-cluster://{}", node.addr()));
        // Valkey 9 would have other databases in a cluster, if it was set to.
        let error = refusal(&node.url_with("", CANARY, 3)).await.to_string();
        let words = ["write `redis-cluster://", "DB index is out of range"];
        assert!(words.iter().any(|words| error.contains(words)), "{error}");
    }
}

#[tokio::test]
async fn a_primary_in_a_cluster_is_refused_with_its_url() {
    let node = cluster::start(&Server::builder(), 2).remove(0);
    let sentinel = sentinel_of(node.addr(), &["mm"]).start();
    let error = refusal(&format!("redis-sentinel://{}/mm", sentinel.addr())).await;
    assert_eq!(url_in(&error), format!("redis-cluster://{}", node.addr()));
}

/// Goal: nodes of a cluster of one shard that do not serve it are named as what they are.
/// Method: one joins as an empty master, and becomes a replica then.
#[tokio::test]
async fn a_node_without_slots_is_refused_with_its_clusters_url() {
    let master = cluster::start(&Server::builder(), 1).remove(0);
    let other = newcomer_to(&master);
    is_named(&other, "refuses the keys of the others").await;
    let (id, newcomer) = (master.admin().command::<String>(&["CLUSTER", "MYID"]), other.admin());
    newcomer.command::<()>(&["CLUSTER", "REPLICATE", &id]);
    let replicates = || newcomer.info("replication").contains("role:slave");
    wait::until_async(LIMIT, async || replicates()).await;
    is_named(&other, "this server is a replica").await;
    locks(&master.url()).await;
}

async fn is_named(node: &Server, words: &str) {
    let error = refusal(&node.url()).await;
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(url_in(&error), format!("redis-cluster://{}", node.addr()));
    let report = ample(&node.url()).connect_lazy().unwrap().check().await;
    let finding = report.findings().next().unwrap();
    assert_eq!(finding.advice(), format!("write `{}`", url_in(&error)), "{report}");
}

#[tokio::test]
async fn a_server_behind_a_url_of_sentinels_is_refused() {
    let server = Server::start();
    let error = refusal(&format!("redis-sentinel://:{CANARY}@{}/mm/5", server.addr())).await;
    assert!(error.to_string().contains("this is no Sentinel"), "{error}");
    assert_eq!(url_in(&error), server.url());
    locks(&url_in(&error)).await;
}

#[tokio::test]
async fn a_name_that_no_sentinel_has_is_refused_with_theirs() {
    let server = Server::start();
    let (one, other) =
        (sentinel_of(server.addr(), &["a"]).start(), sentinel_of(server.addr(), &["b"]).start());
    let url = format!("redis-sentinel://{},{}/mm", one.addr(), other.addr());
    let error = refusal(&url).await.to_string();
    assert!(error.contains("no primary named \"mm\", but a, b"), "{error}");
}

#[tokio::test]
async fn a_wrong_login_at_sentinels_is_refused() {
    let server = Server::start();
    let sentinel = sentinel_of(server.addr(), &["mm"]).password("right").start();
    let url = format!("redis-sentinel://{}/mm", sentinel.addr());
    let wrong = format!("{url}?sentinel_password={CANARY}");
    let unknown = format!("{url}?sentinel_user=nobody&sentinel_password={CANARY}");
    for url in [&url, &wrong, &unknown] {
        let error = refusal(url).await.to_string();
        assert!(error.contains("`sentinel_password` in the URL"), "{error}");
        assert!(error.contains("`LockerBuilder::sentinel_credentials`"), "{error}");
    }
    let credentials = Credentials::password(CANARY);
    let builder = ample(&url).sentinel_credentials(credentials);
    let error = builder.connect().await.unwrap_err();
    assert!(
        error.kind() == LockErrorKind::Refused && !everything(&error).contains(CANARY),
        "{error:?}"
    );
    let credentials = Credentials::password("right");
    // They have priority over those of the URL.
    let locker = ample(&wrong).sentinel_credentials(credentials).connect().await.unwrap();
    locker.lock("k").try_run(async {}).await.unwrap();
}

/// A password of the servers that is wrong is one of the servers, not of the Sentinels.
#[tokio::test]
async fn a_wrong_password_behind_sentinels_is_the_servers() {
    let group = Sentinels::builder().down_after(LONG).password("right").start();
    let error = refusal(&group.url_with("", CANARY)).await.to_string();
    let primary = format!("({})", group.primary().addr());
    assert!(error.contains(&primary) && error.contains("into the URL"), "{error}");
    assert!(!error.contains("sentinel_password"), "{error}");
    locks(&group.url_with("", "right")).await;
}
