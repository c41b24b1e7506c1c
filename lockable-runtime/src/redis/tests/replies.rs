//! Goal: a reply that no server gives makes a reader panic, or is a grant. Method: any value of the protocol, and any
//! message or line of an error, for each reader. A value is often a short list of numbers, as most replies are.

use std::sync::Arc;

use ::redis::{RedisError, RedisResult, Value, VerbatimFormat, parse_redis_value};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::core::backend::{Attempt, Enqueued, Renewal};
use crate::core::naming::namespace::{Channels, Namespace};
use crate::core::process::clock::boot_time;
use crate::core::types::key::LockKey;
use crate::core::types::options::Ttl;
use crate::core::types::owner::OwnerToken;
use crate::core::types::permit::{LocalNumber, LocalPermit, PermitsKey};
use crate::core::types::slot::{SLOTS, Slot};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::{role, shards};
use crate::redis::fault;
use crate::redis::wire::command::{Locked, integer, is_own, locked};
use crate::redis::wire::delete::{Delete, Deleted};
use crate::redis::wire::meaning::Meaning;
use crate::redis::wire::permits::{Asker, Found};
use crate::redis::wire::script::{self, Names, Read, ScriptCall};
use crate::redis::wire::server::{self, Mode};
use crate::redis::wire::tracking::{Reads, Shown};

/// The attempt's own owner token.
const OWN: &str = "0123456789abcdef.17500000000000010000000007";

fn attempt() -> Attempt {
    Attempt::owned(LockKey::from_static("k"), Ttl::DEFAULT, OwnerToken::received(OWN))
}

fn names() -> Names {
    Names::uncached(Namespace::default(), Channels::Plain)
}

fn read<T>(call: ScriptCall<impl Read<T>>, reply: &Value) -> RedisResult<T> {
    (call.read)(reply.clone())
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![-3_i64..20, any::<i64>(), Just(i64::MAX), Just(i64::MIN), 0_i64..70_000]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let words = ["", OWN, "OK", "master", "slave", "sentinel", "version", "8.4.0", "redis", "role"];
    let words = prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    let marked = prop::sample::select(vec!["+", "~", "=", "~~"]);
    prop_oneof![
        words,
        marked.prop_map(|mark| [mark, OWN].concat().into_bytes()),
        number().prop_map(|number| number.to_string().into_bytes()),
        any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        vec(any::<u8>(), 0..40),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let codes = ["ERR", "MOVED", "ASK", "NOSCRIPT", "WRONGTYPE", "NOPERM", "TRYAGAIN", "OOM", ""];
    let words = ["3999 127.0.0.1:6381", "1 :7", "1 [", "1 ?:", "1 a:99999", OWN, "'", "\"`'", "é"];
    let words = prop::sample::select(words.to_vec()).prop_map(str::to_owned);
    let part = prop_oneof![words, "[ -~]{0,20}", "[^\r\n]{0,20}"];
    (prop::sample::select(codes.to_vec()), vec(part, 0..4))
        .prop_map(|(code, parts)| format!("{code} {}", parts.join(" ")))
}

fn error_of(line: &str) -> RedisError {
    let reply = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
    reply.extract_error().unwrap_err()
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => number().prop_map(Value::Int),
        3 => text().prop_map(Value::BulkString),
        1 => Just(Value::Nil),
        1 => Just(Value::Okay),
        1 => "[^\r\n]{0,20}".prop_map(Value::SimpleString),
        1 => any::<f64>().prop_map(Value::Double),
        1 => any::<bool>().prop_map(Value::Boolean),
        1 => text().prop_map(Value::BigNumber),
        1 => "[ -~]{0,9}".prop_map(|text| Value::VerbatimString { format: VerbatimFormat::Text, text }),
        1 => line().prop_map(|line| {
            parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap()
        }),
    ]
}

fn reply() -> impl Strategy<Value = Value> {
    let any = leaf().prop_recursive(3, 24, 6, |value| {
        let pairs = vec((value.clone(), value.clone()), 0..4);
        prop_oneof![
            4 => vec(value.clone(), 0..6).prop_map(Value::Array),
            1 => vec(value, 0..4).prop_map(Value::Set),
            1 => pairs.prop_map(Value::Map),
        ]
    });
    prop_oneof![leaf(), numbers(), any]
}

fn numbers() -> impl Strategy<Value = Value> {
    vec(number().prop_map(Value::Int), 1..5).prop_map(Value::Array)
}

/// Nearly a map of a cluster.
fn map() -> impl Strategy<Value = Value> {
    let node =
        vec(prop_oneof![text().prop_map(Value::BulkString), number().prop_map(Value::Int)], 1..4);
    let host = Just(Value::BulkString(b"host".to_vec()));
    let port = (1_i64..70_000).prop_map(Value::Int);
    let good = (host, port).prop_map(|(host, port)| vec![host, port]);
    let node = prop_oneof![1 => node, 3 => good].prop_map(Value::Array);
    let ends =
        (0_i64..20_000, 0_i64..70_000).prop_map(|(first, last)| [first, last].map(Value::Int));
    let entry = (ends, vec(node, 0..3))
        .prop_map(|(ends, nodes)| Value::Array([&ends[..], &nodes].concat()));
    vec(prop_oneof![5 => entry, 1 => reply()], 0..3).prop_map(Value::Array)
}

/// The numbers of a list of exactly `count`, none below zero.
fn naturals(reply: &Value, count: usize) -> Option<Vec<u64>> {
    let Value::Array(list) = reply else { return None };
    let natural = |part: &Value| match part {
        Value::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    list.iter().map(natural).collect::<Option<Vec<_>>>().filter(|numbers| numbers.len() == count)
}

fn local_permit() -> LocalPermit {
    let permits_key = PermitsKey::with_key(LockKey::from_static("{k}"));
    LocalPermit { permits_key, number: LocalNumber::OneOf(1), permits: 3 }
}

/// A busy reply ends with the value of a lock without a holder; no other does.
#[test]
fn an_obstacle_is_behind_a_busy_reply_only() {
    let reply = |first, last| Value::Array(vec![Value::Int(first), Value::Int(0), last]);
    let outcome = |reply| {
        let attempt = attempt();
        read(script::enqueue(&names(), &attempt), &reply).map(|_| attempt.obstacle().is_some())
    };
    let pause = || Value::BulkString(b"|0123456789abcdef.1 0 deploy".to_vec());
    assert_eq!(outcome(reply(0, pause())).ok(), Some(true));
    for other in [reply(1, pause()), reply(2, pause()), reply(0, Value::Int(0))] {
        assert!(outcome(other.clone()).is_err(), "{other:?}");
    }
}

/// As many numbers as a grant has, but not such as a server gives.
#[test]
fn numbers_that_no_script_returns_are_no_turn() {
    let list = |numbers: &[i64]| numbers.iter().copied().map(Value::Int).collect::<Vec<_>>();
    let (attempt, local_permit) = (attempt(), local_permit());
    for numbers in [[1, 0, -1], [1, -5, 7]] {
        let reply = Value::Array(list(&numbers));
        assert!(read(script::enqueue(&names(), &attempt), &reply).is_err(), "{reply:?}");
        let asker = Asker { attempt: &attempt, local_permit: &local_permit };
        assert!(read(asker.enqueue(&names()), &reply).is_err(), "{reply:?}");
        let none = Value::Array(list(&[0, numbers[1], numbers[2]]));
        assert!(read(asker.enqueue(&names()), &none).is_err(), "{none:?}");
    }
    let release = || script::release(&names(), &attempt, None, Some(&attempt));
    for reply in [Value::Array(list(&[1, -1])), Value::Set(list(&[1, 1]))] {
        assert!(read(release(), &reply).is_err(), "{reply:?}");
    }
}

proptest! {
    /// The value of a lock is a grant if there was none, or if it is the attempt's own token.
    #[test]
    fn only_an_empty_or_own_value_is_a_grant(reply in reply()) {
        let attempt = attempt();
        let is_own_token = matches!(&reply, Value::BulkString(value)
            if value == OWN.as_bytes());
        if let Ok(Locked::Own) = locked(&reply, &attempt) {
            prop_assert!(is_own_token || reply == Value::Nil, "{:?}", reply);
        }
        if let Ok(true) = is_own(&reply, &attempt) {
            prop_assert!(is_own_token, "{:?}", reply);
        }
        drop(integer(&reply));
        drop(Deleted::of(&reply));
    }

    /// A place in the queue is a grant if a list of three numbers begins with one.
    #[test]
    fn only_a_list_of_three_is_a_turn(reply in reply()) {
        let attempt = attempt();
        if let Ok(Enqueued::Granted(_)) = read(script::enqueue(&names(), &attempt), &reply) {
            prop_assert_eq!(naturals(&reply, 3).map(|numbers| numbers[0]), Some(1), "{:?}", reply);
        }
        let local_permit = local_permit();
        let asker = Asker { attempt: &attempt, local_permit: &local_permit };
        if let Ok((Enqueued::Granted(_), permit)) = read(asker.enqueue(&names()), &reply) {
            prop_assert!(naturals(&reply, 3).is_some(), "{:?}", reply);
            let is_of_local_permit = permit.is_some_and(|permit| local_permit.members().any(|one| one == permit));
            prop_assert!(is_of_local_permit, "{:?}", reply);
        }
        if let Ok(Found::Permit(_)) = read(asker.take(&names()), &reply) {
            prop_assert!(matches!(reply, Value::Int(1..=3)), "{:?}", reply);
        }
        drop(read(asker.leave(&names()), &reply));
    }

    /// As many outcomes as requests, whatever the reply is.
    #[test]
    fn each_request_has_its_own_outcome(reply in reply()) {
        let attempt = Arc::new(attempt());
        let attempts = [Arc::clone(&attempt), attempt];
        let renewals = attempts.each_ref().map(|one| Renewal::new(one, None, boot_time()));
        if let Ok(renewed) = read(script::renew(&names(), &renewals), &reply) {
            prop_assert_eq!(renewed.len(), 2);
        }
        if let Ok(freed) = read(script::free_all(&names(), &attempts), &reply) {
            prop_assert_eq!(freed.len(), 2);
        }
        drop(read(script::renew_one(&names(), &renewals[0]), &reply));
        let others = [1, 2].map(Slot::new);
        let seed = script::seed(&names(), &attempts[0], &others);
        if let Ok(counted) = read(seed, &reply) {
            prop_assert!(counted.others.iter().all(|slot| others.contains(slot)));
        }
    }

    #[test]
    fn other_replies_are_read_or_refused(reply in reply()) {
        let attempt = attempt();
        let release = script::release(&names(), &attempt, None, Some(&attempt));
        if let Ok((_, Some(fence))) = read(release, &reply) {
            let [first, time] = naturals(&reply, 2).unwrap()[..] else { unreachable!("two") };
            let is_ahead = first > time;
            prop_assert_eq!((fence.first, fence.passes == 0), (first, is_ahead), "{:?}", reply);
        }
        drop(read(script::force(&names(), &attempt, b"x"), &reply));
        drop(read(script::free_one(&names(), &attempt, None), &reply));
        drop(read(script::transfer(&names(), &attempt, &attempt), &reply));
        drop(read(script::leave(&names(), &attempt), &reply));
        drop(read(script::inspect(&names(), &attempt.key), &reply));
        drop((Mode::of(&reply), Delete::of(&reply), server::name(&reply)));
        drop((server::unfit_by_handshake(&reply), server::is_replica(&reply)));
        drop((role::watched(&reply), role::primary(&reply)));
    }

    #[test]
    fn a_map_of_the_cluster_has_only_its_slots(reply in prop_oneof![map(), reply()]) {
        let asked = Endpoint { host: "asked".to_owned(), port: 7 };
        for shard in shards::shards(&reply, &asked).into_iter().flatten() {
            for range in shard.ranges {
                prop_assert!(usize::from(*range.end()) < SLOTS, "{:?}", range);
            }
        }
    }

    #[test]
    fn counts_of_tracked_locks_add_up(
        replies in vec(prop_oneof![reply(), number().prop_map(Value::Int)], 0..5),
    ) {
        let attempt = Arc::new(attempt());
        attempt.mark_watched();
        let renewals = [Renewal::new(&attempt, None, boot_time())];
        let is_whole = replies.len() == 2 && replies[1] == Value::Int(1);
        let shown = Reads::of(&renewals, false).shown(replies, [true].into_iter());
        prop_assert!(!is_whole || shown != Shown::Gone);
    }

    /// No error shows an owner token, and each has a meaning for its request.
    #[test]
    fn errors_are_understood_and_show_no_token(line in line()) {
        let error = error_of(&line);
        let asked = Endpoint { host: "asked".to_owned(), port: 7 };
        drop(Meaning::of(&error, &asked));
        let shown = format!("{:?}", fault::of("server", &error).message);
        prop_assert!(!shown.contains(OWN), "{}", shown);
    }
}
