//! Fence counters of other slots that one script seeds together with its own.

use std::time::Duration;

use lockable_runtime::__internals::fence_counter;
use lockable_runtime::Locker;
use lockable_tests::cluster::slot;
use lockable_tests::{Admin, Answer, Cue, Server, StubNodes};
use rstest::rstest;

use crate::support::{ample, connect_ample, server_and_locker};

/// Goal: few of the first locks of a connection run a script, though they have nearly all slots.
/// Method: every release runs one, and every other script seeds.
#[tokio::test]
async fn a_few_hundred_scripts_seed_all_slots() {
    let (server, locker) = server_and_locker().await;
    let admin = server.admin();
    admin.reset_statistics();
    for key in 0..PAIRS {
        token(&locker, &format!("order:{key}")).await;
    }
    let seeds = admin.command_calls("evalsha") - PAIRS;
    assert!((200..280).contains(&seeds), "{seeds} seeds");
    let fences = admin.keys("lockable:fence:*");
    assert_eq!(fences.len(), SLOTS);
    for fence in &fences[..100] {
        // Less by what the pairs took.
        assert!((300_000..=600_000).contains(&admin.pttl(fence)), "{fence}");
    }
}

/// Also those that a script has seeded beside its own, and that no one has counted up yet.
#[tokio::test]
async fn tokens_of_all_slots_rise_over_losses_and_restarts() {
    let (server, locker) = server_and_locker().await;
    let keys: Vec<_> = (0..400).map(|key| format!("order:{key}")).collect();
    let mut latest = vec![0; keys.len()];
    for round in 0..5 {
        let other = connect_ample(&server.url()).await;
        // Half of them each, so that the other ones meet counters that are older.
        for (number, (key, latest)) in keys.iter().zip(&mut latest).enumerate() {
            let of = if (number + round) % 2 == 0 { &locker } else { &other };
            let next = token(of, key).await;
            assert!(next > *latest, "{key}: {next} after {latest}");
            *latest = next;
            if number == keys.len() / 2 {
                lose(&server, round);
            }
        }
        lose(&server, round + 1);
    }
}

fn lose(server: &Server, round: usize) {
    match round % 3 {
        0 => server.admin().flush(),
        1 => server.restart(),
        _ => {
            server.admin().command::<()>(&["SAVE"]);
            server.restart();
        }
    }
}

/// Goal: a counter that another slot's seed finds is never lowered, and other data are no fence counter.
/// Method: all is in the first slots, which are seeded together with the second lock of a connection.
#[tokio::test]
async fn what_is_at_another_slots_counter_is_only_raised() {
    let server = Server::start();
    let admin = server.admin();
    let ahead = time(&admin) + 3_600_000_000;
    let (ahead, full) = (ahead.to_string(), (1_u64 << 53).to_string());
    let keys: Vec<_> =
        (0..).map(|key| format!("k{key}")).filter(|key| is_first(key)).take(9).collect();
    let fences: Vec<_> = keys.iter().map(|key| fence(key)).collect();
    let set = |number: usize, value: &str, life: &str| {
        admin.command::<()>(&["SET", &fences[number], value, "PX", life]);
    };
    set(0, &ahead, "600000");
    set(1, &full, "600000");
    set(2, "forty", "600000");
    admin.command::<()>(&["RPUSH", &fences[3], "a"]);
    set(4, "1700000000000000", "3600000");
    set(5, "1700000000000000", "1000");
    admin.command::<()>(&["SET", &fences[6], "1700000000000000"]);
    admin.command::<()>(&["SET", &fences[7], "0700000000000000"]);
    let locker = connect_ample(&server.url()).await;
    let before = time(&admin);
    for key in ["one", "two"] {
        token(&locker, key).await;
    }
    let stays = |number: usize| admin.get(&fences[number]).unwrap();
    assert_eq!([stays(0), stays(1), stays(2)], [ahead.clone(), full, "forty".to_owned()]);
    assert_eq!((admin.type_of(&fences[3]).as_str(), &*stays(7)), ("list", "0700000000000000"));
    for (number, life) in [(4, 3_600_000), (5, 600_000), (6, 600_000), (8, 600_000)] {
        assert!(stays(number).parse::<u64>().unwrap() > before, "{number}");
        assert!((life - 10_000..=life).contains(&admin.pttl(&fences[number])), "{number}");
        assert!(token(&locker, &keys[number]).await > before);
    }
    assert!(token(&locker, &keys[0]).await > ahead.parse().unwrap());
    for number in [1, 2, 3, 7] {
        let error = locker.lock(&keys[number]).try_acquire().await.unwrap_err();
        assert!(error.to_string().contains(&fences[number]), "{error}");
    }
}

/// Goal: the script about several slots is refused, and the lock is granted all the same; it is not tried again.
/// Method: a proxy that refuses keys of several slots, and answers the probe of a connection as one server does.
#[rstest]
#[case::as_by_a_cluster(None)]
#[case::in_other_words(Some("ERR keys of a script have to be at one server"))]
#[tokio::test]
async fn a_refusal_of_several_slots_fails_no_acquisition(#[case] refusal: Option<&str>) {
    let (server, together) = (Server::start(), Cue::of(["EVALSHA"]).about("64"));
    let stub_nodes = StubNodes::of_one_slot_each(&server);
    // The script about all marks has a key for each of sixteen slots, and two of its own.
    stub_nodes.answer(0, Cue::of(["EVAL"]).about("18"), Answer::Number(0));
    stub_nodes.answer(0, Cue::of(["DEL"]).times(1), Answer::Number(16));
    if let Some(refusal) = refusal {
        stub_nodes.answer(0, together.clone(), Answer::error(refusal));
    }
    let locker = connect_ample(&stub_nodes.url_of(0)).await;
    for key in 0..20 {
        token(&locker, &format!("order:{key}")).await;
    }
    assert_eq!(stub_nodes.count(0, &together), 1);
    assert_eq!(server.admin().keys("lockable:fence:*").len(), 20);
}

/// Goal: a connection that is tried while its server loads its data does not end what is done for several slots at once.
/// Method: the first write is refused, and so are the marks of all slots; lock by lock they would succeed.
#[tokio::test]
async fn a_server_that_loads_is_taken_for_no_proxy() {
    let server = Server::start();
    let stub_nodes = StubNodes::before(&server);
    for refused in [Cue::of(["SET"]), Cue::of(["EVAL"]).about("18"), Cue::of(["DEL"])] {
        let loading = Answer::error("LOADING Redis is loading the dataset in memory");
        stub_nodes.answer(0, refused.times(1), loading);
    }
    let locker = ample(&stub_nodes.url_of(0)).connect_lazy().unwrap();
    let error = locker.lock("first").try_acquire().await.unwrap_err();
    assert!(error.to_string().contains("LOADING"), "{error}");
    for key in 0..20 {
        token(&locker, &format!("order:{key}")).await;
    }
    assert!(stub_nodes.count(0, &Cue::of(["EVALSHA"]).about("64")) > 0);
}

/// The token of a grant that is over, of a lease for which a counter lives no longer than usual.
async fn token(locker: &Locker, key: &str) -> u64 {
    let guard = locker.lock(key).expire(Duration::from_secs(60)).acquire().await.unwrap();
    let token = guard.lease().fencing_token().into();
    guard.release().await.unwrap();
    token
}

/// Whether the lock is in one of the slots that are seeded first.
fn is_first(key: &str) -> bool {
    slot(&format!("disLock:{key}")) < 60
}

fn fence(key: &str) -> String {
    fence_counter(&format!("disLock:{key}")).unwrap()
}

/// The server's time in microseconds.
fn time(admin: &Admin) -> u64 {
    let [seconds, micros] = admin.command::<[u64; 2]>(&["TIME"]);
    seconds * 1_000_000 + micros
}

const PAIRS: u64 = 2_500;
const SLOTS: usize = 16_384;
