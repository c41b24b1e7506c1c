//! Leaders that are killed, stopped, told to step down, and shut down.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockable_runtime::Locker;
use lockable_tests::{Admin, Peer, Server, long_form, wait};
use tokio::task::JoinSet;
use tracing::Level;

use crate::events;
use crate::support::{KEY, LIMIT, LONG, WORKER, elapse, impatient, patient, server_and_proxy};
use crate::waiting::history::History;

/// Goal: whatever becomes of the leader, another one is at work, and no two believe that they lead at once.
/// Method: three processes print when they believed that they led, and with which token. The leader is disturbed again
/// and again.
#[tokio::test]
async fn a_leader_that_goes_has_one_successor() {
    let rounds = long_form(8, 800);
    let server = Server::start();
    let admin = server.admin();
    let locker = patient(&server.url()).connect_deadline(LONG).connect().await.unwrap();
    let mut workers: Vec<_> = (0..3).map(|number| worker(&server, number)).collect();
    let mut history = History::default();
    let mut leader = leads_other_than(&admin, "").await;
    for round in 0..rounds {
        let number: usize = leader.rsplit(' ').next().unwrap().parse().unwrap();
        match round % 4 {
            0 => history
                .note(&std::mem::replace(&mut workers[number], worker(&server, number)).kill()),
            1 => workers[number].pause(),
            2 => workers[number].say("resign"),
            _ => step_down(&locker).await,
        }
        leader = leads_other_than(&admin, &leader).await;
        // It reads that it does not lead any more.
        workers[number].resume();
        elapse(Duration::from_millis(100)).await;
    }
    for worker in workers {
        history.note(&worker.hear_out());
    }
    let terms = history.checked();
    assert!(terms >= rounds, "{terms} terms in {rounds} rounds");
    crate::support::freed(&server).await;
}

/// Goal: campaigns outlive an outage; in it no one believes that it leads, and afterwards one does, with a larger token.
/// Method: two candidates whose connections are cut, and cannot be opened again, until the former leader has campaigned
/// in vain a few times. The long form lasts until calls that wait have given up, too.
#[tokio::test]
async fn candidates_outlive_an_outage() {
    events::listen();
    let (server, proxy) = server_and_proxy();
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let (mut probes, mut candidates) = (Vec::new(), JoinSet::new());
    for _ in 0..2 {
        let locker = impatient(&proxy.url()).connect().await.unwrap();
        let tokens = Arc::clone(&tokens);
        let leading = locker.lock("outage").expire(2 * LEASE).lead(move |lease| {
            tokens.lock().unwrap().push(lease.fencing_token());
            pending::<()>()
        });
        probes.push(leading.watch());
        candidates.spawn(leading);
    }
    let leaders = || probes.iter().filter(|probe| probe.is_leader()).count();
    wait::until_async(LIMIT, async || leaders() == 1).await;
    proxy.refuse();
    proxy.cut();
    wait::until_async(LIMIT, async || leaders() == 0).await;
    let before = tokens.lock().unwrap().len();
    let failed = || events::count("disLock:outage", Level::DEBUG, "outcome=\"failed\"");
    let (known, wanted) = (failed(), long_form(3, 40));
    wait::until_async(LONG, async || failed() >= known + wanted).await;
    assert_eq!((leaders(), tokens.lock().unwrap().len()), (0, before));
    proxy.accept();
    wait::until_async(LIMIT, async || leaders() == 1).await;
    assert!(tokens.lock().unwrap().is_sorted_by(|one, next| one < next));
    candidates.shutdown().await;
    crate::support::freed(&server).await;
}

/// Goal: a process that starts before its Redis is set up as it should be leads once that is mended.
/// Method: what refuses the first campaign is mended after the warning, and nothing else is done.
#[tokio::test]
async fn a_first_campaign_outlives_what_an_operator_mends() {
    events::listen();
    let list = ["RPUSH", "disLock:refused-data", "other"].as_slice();
    let cases: [(&str, &str, &[&str], &[&str]); 4] = [
        ("password", "on >other ~* &* +@all", &["PING"], &["ACL", "SETUSER", "app", ">secret"]),
        ("right", "on >secret ~* &* +@all -set", &["PING"], &["ACL", "SETUSER", "app", "+set"]),
        ("key", "on >secret ~a* &* +@all", &["PING"], &["ACL", "SETUSER", "app", "~*"]),
        ("data", "on >secret ~* &* +@all", list, &["DEL", "disLock:refused-data"]),
    ];
    for (case, rules, spoil, mend) in cases {
        let server = Server::builder().user("app", rules).start();
        server.admin().try_command(spoil).unwrap();
        let locker = patient(&server.url_with("app", "secret", 0)).connect_lazy().unwrap();
        let leading = locker.lock(format!("refused-{case}")).lead(|_| pending::<()>());
        let (mut probe, leading) = (leading.watch(), tokio::spawn(leading));
        let key = format!("disLock:refused-{case}");
        let failed = || events::count(&key, Level::WARN, "is repeated each second");
        wait::until_async(LIMIT, async || failed() == 1).await;
        server.admin().try_command(mend).unwrap();
        assert!(wait::ends(probe.changed()).await, "{case}");
        leading.abort();
        assert!(leading.await.unwrap_err().is_cancelled(), "{case}");
        assert_eq!((failed(), events::count(&key, Level::INFO, "outcome=\"dropped\"")), (1, 1));
    }
}

const LEASE: Duration = Duration::from_secs(1);

fn worker(server: &Server, number: usize) -> Peer {
    let (url, lease) = (server.url(), LEASE.as_millis().to_string());
    let peer = Peer::start(WORKER, ["lead", &url, &number.to_string(), &lease]);
    assert_eq!(peer.hear(), "ready");
    peer
}

async fn step_down(locker: &Locker) {
    let admin = locker.admin();
    // No one holds it where the lease of the leader has just ended.
    if let Some(held) = admin.holder("k").await.unwrap() {
        admin.revoke(&held, "step down", LONG).await.unwrap();
    }
}

/// The owner token of the leader, once it is another one.
async fn leads_other_than(admin: &Admin, former: &str) -> String {
    let mut leader = String::new();
    let is_other = async || {
        leader = admin.get(KEY).unwrap_or_default();
        !leader.is_empty() && leader != former
    };
    wait::until_async(LIMIT, is_other).await;
    leader
}
