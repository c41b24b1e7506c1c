//! Other data in the place of a lock, of its fence counter or of its queue.

use std::time::Duration;

use lockable_tests::{Admin, Server};

use self::Before::{Awaited, Free, Held};
use self::Place::{Fence, Lock, Queue};
use super::companions;
use super::side::Side;
use super::step::{Next, What};
use crate::fixture::real_time;

/// Goal: a verb that changes what is not a lock's, or lets it stop what the verb can still do.
/// Method: each verb meets other data in each place where it matters; its answer and what is stored after it
/// are compared with what is expected, and the other data with themselves.
#[test]
fn other_data_are_left_as_they_are() {
    let server = Server::start();
    let admin = server.admin();
    let mut redis = Side::open(&server.url(), real_time());
    for (number, case) in CASES.iter().enumerate() {
        let (place, before, verb, answer, lock, queue) = *case;
        for other in place.others() {
            let names = [0, 1, 2].map(|key| format!("{number}:{key}:{other:?}"));
            redis.clear(names);
            prepare(before, &mut redis);
            let found =
                answer_beside(&place.name(&redis.keys[0]), *other, verb, &mut redis, &admin);
            assert!(found.contains(answer), "{case:?} {other:?}: {found}");
            assert_eq!(place.rest(&redis, &admin), (lock.into(), queue.into()), "{case:?}");
        }
    }
}

/// Where the other data are, what is there otherwise, and the verb; then what is in its answer, who has the
/// lock after it, and who waits, as far as these are not other data.
const CASES: [(Place, Before, &str, &str, &str, &str); 38] = [
    (Lock, Held, "acquire", "the key holds other data", "", ""),
    (Lock, Held, "enqueue", "the key holds other data", "", ""),
    (Lock, Held, "release", "(Taken, None)", "", ""),
    (Lock, Awaited, "release", "(Taken, None)", "", "1"),
    (Lock, Awaited, "release and keep", "(Taken, None)", "", "1"),
    (Lock, Awaited, "release to", "Taken, None", "", "1"),
    (Lock, Held, "release all", ", Released, Taken]", "", ""),
    (Lock, Awaited, "leave", "()", "", "1"),
    (Lock, Awaited, "leave the queue", "()", "", ""),
    (Lock, Held, "renew", "[Taken]", "", ""),
    (Lock, Held, "renew all", "[Taken, Held, Taken]", "", ""),
    (Lock, Held, "transfer", "Taken", "", ""),
    (Lock, Held, "inspect", "the key holds other data", "", ""),
    // The lock is held by then: the caller releases it.
    (Fence, Free, "acquire", "the fence counter `", "3", ""),
    (Fence, Free, "enqueue", "the fence counter `", "", ""),
    (Fence, Held, "enqueue", "queued for", "0", "3"),
    (Fence, Held, "ask again", "the fence counter `", "0", ""),
    (Fence, Held, "release", "(Released, None)", "", ""),
    // The waiter finds the error when it asks.
    (Fence, Awaited, "release", "(Released, None)", "1", ""),
    (Fence, Awaited, "release and keep", "(Released, None)", "=0", "1"),
    (Fence, Held, "release to", "Released, None", "", "3"),
    (Fence, Awaited, "release to", "Released, None", "1", "3"),
    (Fence, Awaited, "release all", ", Released, Released]", "1", ""),
    (Fence, Awaited, "leave", "()", "1", ""),
    (Fence, Awaited, "renew all", "[Held, Held, Held]", "0", "1"),
    (Queue, Free, "acquire", "true", "3", ""),
    (Queue, Free, "enqueue", "the queue `", "", ""),
    (Queue, Held, "enqueue", "the queue `", "0", ""),
    (Queue, Held, "ask again", "Granted { who: 0", "0", ""),
    (Queue, Held, "release", "(Released, None)", "", ""),
    (Queue, Held, "release and keep", "(Released, None)", "~0", ""),
    (Queue, Held, "release to", "Released, None", "", ""),
    (Queue, Held, "release all", ", Released, Released]", "", ""),
    (Queue, Held, "leave", "()", "", ""),
    (Queue, Awaited, "leave the queue", "()", "0", ""),
    (Queue, Held, "renew all", "[Held, Held, Held]", "0", ""),
    (Queue, Held, "transfer", "Held", "3", ""),
    (Queue, Held, "inspect", "Some((\"0\", ", "0", ""),
];

#[derive(Clone, Copy, Debug)]
enum Place {
    Lock,
    Fence,
    Queue,
}

/// The lock may be free, or that of attempt 0, and attempt 1 may wait for it. Attempt 2 has another lock.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    Free,
    Held,
    Awaited,
}

/// What another program puts there.
#[derive(Clone, Copy, Debug)]
enum Other {
    List,
    Text,
}

const LIFE: Duration = Duration::from_secs(60);

fn prepare(before: Before, redis: &mut Side) {
    redis.ask(&What::Enqueue { key: 0, process: 0, ttl: LIFE });
    redis.ask(&What::Enqueue { key: 0, process: 1, ttl: LIFE });
    redis.ask(&What::Acquire { key: 1, process: 0, ttl: LIFE });
    if before != Awaited {
        redis.ask(&What::Leave { attempt: 1 });
    }
    if before == Free {
        redis.ask(&verb("release"));
    }
}

/// What is answered beside these data, which stay as they are, and so does their life.
fn answer_beside(name: &str, other: Other, words: &str, redis: &mut Side, admin: &Admin) -> String {
    admin.del(name);
    match other {
        Other::List => drop(admin.command::<u64>(&["RPUSH", name, "another's"])),
        Other::Text => admin.set(name, "another's"),
    }
    admin.command::<()>(&["PEXPIREAT", name, "4000000000000"]);
    let look = || admin.command::<(Vec<u8>, u64)>(&["EVAL", LOOK, "1", name]);
    let before = look();
    let answer = redis.ask(&verb(words));
    assert_eq!(look(), before, "{words} changed {name}");
    answer
}

const LOOK: &str = "return {redis.call('DUMP', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1])}";

fn verb(words: &str) -> What {
    let next = Next::New { process: 0, ttl: LIFE };
    match words {
        "acquire" => What::Acquire { key: 0, process: 2, ttl: LIFE },
        "enqueue" => What::Enqueue { key: 0, process: 0, ttl: LIFE },
        "ask again" => What::Ask { attempt: 0 },
        "release" => What::Release { attempt: 0, keep: Duration::ZERO },
        "release and keep" => What::Release { attempt: 0, keep: LIFE },
        "release to" => What::ReleaseTo { attempt: 0, next, keep: Duration::ZERO },
        "release all" => {
            What::ReleaseAll { attempts: vec![(2, Duration::ZERO), (0, Duration::ZERO)] }
        }
        "leave" => What::Leave { attempt: 0 },
        "leave the queue" => What::Leave { attempt: 1 },
        "renew" => What::Renew { batch: vec![(0, Some(LIFE))] },
        "renew all" => What::Renew { batch: vec![(0, Some(LIFE)), (2, Some(LIFE)), (0, None)] },
        "transfer" => What::Transfer { attempt: 0, next },
        "inspect" => What::Inspect { key: 0 },
        other => panic!("no verb is called {other}"),
    }
}

impl Place {
    /// What does not belong there.
    fn others(self) -> &'static [Other] {
        match self {
            Lock => &[Other::List],
            Fence => &[Other::List, Other::Text],
            Queue => &[Other::Text],
        }
    }

    fn name(self, key: &str) -> String {
        match self {
            Lock => key.to_owned(),
            Fence => companions::fence(key),
            Queue => companions::queue(key),
        }
    }

    /// Who has the lock, and who waits, where that is not the place of the other data.
    fn rest(self, redis: &Side, admin: &Admin) -> (String, String) {
        let [lock, queue] = [Lock, Queue].map(|place| place.name(&redis.keys[0]));
        let owner = if matches!(self, Lock) { None } else { admin.get(&lock) };
        let entries: Vec<String> = match self {
            Queue => Vec::new(),
            Lock | Fence => admin.command(&["LRANGE", &queue, "0", "-1"]),
        };
        let who = |entry: &String| redis.number(entry.split_once(' ').unwrap().1);
        let queue: Vec<_> = entries.iter().map(who).collect();
        (owner.map_or_else(String::new, |owner| redis.number(&owner)), queue.join(", "))
    }
}
