//! Redacted keys and owner tokens: they are in nothing that errors, events, spans and `{:?}` show.

use std::fmt::Debug;
use std::future::pending;
use std::time::Duration;

use lockable_runtime::LockErrorKind::{
    Busy, Done, HeldByCaller, InvalidKey, InvalidOption, Lost, MaxHoldReached, Refused, Revoked,
    Unavailable, WaitLimitReached, WrongType,
};
use lockable_runtime::{
    LockError, LockErrorKind, LockGuard, LockRequest, Locker, RequestId, distributed_lock, shutdown,
};
use lockable_tests::{Admin, Proxy, Server, ServerBuilder, wait};
use tracing::Level;

use crate::events;
use crate::support::{LIMIT, LONG, acl_rights, ample, connect_ample, everything, server_and_proxy};

/// Is in every key, and in the request id that is a part of every owner token.
const CANARY: &str = "canary";

const NAME: &str = "mail:canary@nest";
const KEY: &str = "disLock:mail:canary@nest";
const FENCE: &str = "lockable:fence:{0mQ}";
const QUEUE: &str = "lockable:queue:{disLock:mail:canary@nest}";

/// A wait that is over soon.
const SHORT: Duration = Duration::from_millis(300);

/// A lease whose end is waited for.
const LEASE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn debug_output_shows_no_secret() {
    as_a_request(async |mut nest: Nest| {
        let guard = nest.guard().await;
        for text in [shown(&guard), shown(&guard.lease()), shown(&nest.lock()), shown(&nest.locker)]
        {
            nest.check("value", &text);
        }
        let invalid = nest.locker.lock("mail:canary}");
        nest.check("request", &shown(&invalid));
    })
    .await;
}

#[tokio::test]
async fn no_secret_is_shown_of_busy_or_lost_locks() {
    as_a_request(async |mut nest: Nest| {
        let guard = nest.guard().await;
        nest.fails(Busy, decorated(&nest, CANARY).await);
        nest.fails(WaitLimitReached, nest.lock().wait(SHORT).acquire().await);
        nest.fails(InvalidOption, nest.lock().min_hold(LIMIT * 99).acquire().await);
        nest.fails(InvalidOption, guard.lease().extend(Duration::ZERO).await);
        nest.fails(InvalidKey, nest.locker.lock("mail:canary}").acquire().await);
        nest.fails(InvalidKey, nest.locker.inspect("mail:canary}").await);
        nest.admin.set(KEY, "another's");
        nest.fails(Lost, guard.lease().extend(LIMIT).await);
        nest.fails(Lost, Err::<(), _>(guard.lease().lost().await));
        nest.fails(Lost, guard.release().await);
        nest.admin.del(KEY);
        let own = nest.lock().run(async { nest.lock().acquire().await }).await.unwrap();
        nest.fails(HeldByCaller, own);
        let hanging = nest.lock().renew().max_hold(SHORT).run(pending::<()>());
        nest.fails(MaxHoldReached, hanging.await);
        nest.fails(Lost, nest.lock().expire(LEASE).run(pending::<()>()).await);
    })
    .await;
}

/// The operator's words name the key.
#[tokio::test]
async fn no_secret_is_shown_of_holders_that_are_asked() {
    as_a_request(async |nest: Nest| {
        let guard = nest.lock().renew().acquire().await.unwrap();
        let (admin, reason) = (nest.locker.admin(), format!("{KEY} is stuck"));
        let held = admin.holder(NAME).await.unwrap().unwrap();
        let is_asked = async || {
            admin.revoke(&held, &reason, Duration::ZERO).await.unwrap();
            !guard.lease().is_held()
        };
        wait::until_async(LIMIT, is_asked).await;
        let error = nest.fails(Revoked, Err::<(), _>(guard.lease().lost().await));
        assert!(error.contains(" is stuck"), "{error}");
        nest.fails(Revoked, guard.lease().extend(LIMIT).await);
        admin.force_release(&held, &reason).await.unwrap();
        wait::until_async(LIMIT, async || guard.lease().is_lost()).await;
        nest.fails(Lost, Err::<(), _>(guard.lease().lost().await));
        nest.fails(Lost, guard.release().await);
    })
    .await;
}

#[tokio::test]
async fn no_secret_is_shown_beside_foreign_data() {
    as_a_request(async |mut nest: Nest| {
        nest.guard().await.release().await.unwrap();
        nest.admin.command::<u64>(&["RPUSH", KEY, "data"]);
        nest.fails(WrongType, nest.lock().acquire().await);
        nest.fails(WrongType, nest.lock().wait(LONG).acquire().await);
        nest.fails(WrongType, nest.locker.inspect(NAME).await);
        nest.admin.flush();
        nest.admin.command::<u64>(&["RPUSH", FENCE, "data"]);
        let error = nest.fails(Refused, nest.lock().acquire().await);
        assert!(error.contains(FENCE), "{error}");
        nest.is_free().await;
        nest.admin.flush();
        nest.admin.set(FENCE, "text");
        nest.fails(Refused, nest.lock().acquire().await);
        nest.is_free().await;
        nest.admin.set(KEY, "another's");
        let is_freed = async {
            wait::until_async(LIMIT, async || nest.admin.pttl(QUEUE) > 0).await;
            nest.admin.del(KEY);
        };
        let (outcome, ()) = tokio::join!(nest.lock().wait(LONG).acquire(), is_freed);
        let error = nest.fails(Refused, outcome);
        assert!(error.contains(FENCE), "{error}");
        nest.admin.flush();
        nest.admin.set(KEY, "another's");
        nest.admin.set(QUEUE, "data");
        let error = nest.fails(WrongType, nest.lock().wait(LONG).acquire().await);
        assert!(error.contains("lockable:queue:{redacted:"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn no_secret_is_shown_where_a_right_is_missing() {
    let rights = ["-set", "-get", "-evalsha", "-incr", "resetkeys", "resetchannels"];
    let all = format!("on >secret {}", acl_rights().join(" "));
    let server = Server::builder().user("app", &all).start();
    let proxy = Proxy::start(&server);
    let url = server.url_with("app", "secret", 0);
    as_a_request_on(server, proxy, &url, async |mut nest: Nest| {
        for right in rights {
            let guard = nest.guard().await;
            nest.admin.command::<()>(&["ACL", "SETUSER", "app", right]);
            nest.shows(guard.lease().extend(LIMIT).await);
            nest.shows(nest.lock().try_acquire().await);
            nest.shows(nest.lock().wait(SHORT).acquire().await);
            // A holder is shown with its request id, which is what one inspects for.
            nest.shows(nest.locker.inspect(NAME).await.map(drop));
            nest.shows(guard.release().await);
            let rules: Vec<_> = ["ACL", "SETUSER", "app"].into_iter().chain(acl_rights()).collect();
            nest.admin.command::<()>(&rules);
            nest.is_free().await;
        }
    })
    .await;
}

/// Goal: a server that quotes a command, with the keys and owner tokens in it, is quoted without those.
/// Method: commands arrive misspelt, so that a real server refuses them in its own words.
#[tokio::test]
async fn no_secret_is_shown_of_a_quoted_command() {
    as_a_request(async |mut nest: Nest| {
        nest.guard().await.release().await.unwrap();
        for command in ["SET", "INCR"] {
            nest.proxy.misspell(Some(command));
            nest.quotes(nest.lock().acquire().await);
            nest.proxy.misspell(None);
            nest.is_free().await;
        }
        let guard = nest.guard().await;
        // By its text; from now on by its name.
        nest.locker.inspect(NAME).await.unwrap();
        nest.proxy.misspell(Some("EVALSHA"));
        nest.quotes(guard.lease().extend(LIMIT).await);
        nest.quotes(nest.lock().wait(LONG).acquire().await);
        nest.quotes(nest.locker.inspect(NAME).await);
        nest.quotes(guard.release().await);
        nest.proxy.misspell(None);
        nest.is_free().await;
    })
    .await;
}

/// An owner token releases the lock, so it is a secret beside a key that is none.
#[tokio::test]
async fn no_owner_token_is_quoted_where_keys_are_shown() {
    let (server, proxy) = server_and_proxy();
    let locker = connect_ample(&proxy.url()).await;
    let request = RequestId::new("7 for all");
    let guard = request.scope(locker.lock("k").acquire()).await.unwrap();
    let owner = server.admin().get("disLock:k").unwrap();
    proxy.misspell(Some("EVALSHA"));
    for error in
        [guard.lease().extend(LIMIT).await.unwrap_err(), guard.release().await.unwrap_err()]
    {
        let text = everything(&error);
        assert!(text.contains("lock `disLock:k`: ") && text.contains("EVALSH_"), "{text}");
        for part in owner.splitn(2, '.') {
            assert!(!text.contains(part), "{text}");
        }
    }
}

#[tokio::test]
async fn no_secret_is_shown_by_a_failing_background() {
    as_a_request(async |nest: Nest| {
        let renewed = nest.lock().expire(2 * LEASE).renew().acquire().await.unwrap();
        let dropped = nest.locker.lock("mail:canary@tree").expire(LEASE).acquire().await.unwrap();
        nest.proxy.misspell(Some("EVALSHA"));
        drop(dropped);
        renewed.lease().lost().await;
        for words in [
            &["a renewal had no reply", "EVALSH_"][..],
            &["could not be released", "EVALSH_", "redacted:"],
        ] {
            wait::until_async(LIMIT, async || events::logged_with(Level::WARN, words) > 0).await;
        }
        nest.proxy.misspell(None);
    })
    .await;
}

/// What the probe of a connection says, where that is what is refused.
#[tokio::test]
async fn no_secret_is_shown_where_a_server_lacks_commands() {
    for missing in [&["SET"][..], &["INCR"], &["EVALSHA"], &["EVAL", "EVALSHA"], &["TIME"]] {
        let rename = |server: ServerBuilder, name: &&str| {
            server.config("rename-command", &format!("{name} \"\""))
        };
        let server = missing.iter().fold(Server::builder(), rename).start();
        let (proxy, url) = (Proxy::start(&server), server.url());
        as_a_request_on(server, proxy, &url, async |nest: Nest| {
            nest.shows(nest.lock().try_acquire().await);
            nest.shows(nest.lock().wait(SHORT).acquire().await);
        })
        .await;
    }
}

#[tokio::test]
async fn no_secret_is_shown_without_a_working_server() {
    as_a_request(async |mut nest: Nest| {
        let guard = nest.guard().await;
        nest.admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        nest.fails(Unavailable, nest.locker.lock("mail:canary@tree").acquire().await);
        nest.server.kill();
        nest.fails(Unavailable, nest.lock().acquire().await);
        nest.fails(Unavailable, guard.lease().extend(LIMIT).await);
        drop(guard);
        let error = shutdown(Duration::from_millis(1)).await.unwrap_err();
        nest.check("shutdown", &everything(&error));
    })
    .await;
}

/// Goal: a call of any kind that fails shows no key, no request id, and no part of the key in a reason.
/// Method: every kind of call, beside everything that can be in the place of its locks, queues and fence counters.
#[tokio::test]
async fn no_secret_is_shown_by_any_call_that_fails() {
    as_a_request(async |nest: Nest| {
        drop(each_call(&nest.locker).await);
        nest.fails(Done, once(&nest.locker, CANARY).await);
        let fences = nest.admin.keys("lockable:fence:*");
        let fences: Vec<_> = fences.iter().map(String::as_str).collect();
        let set = |names: &[&str], value: &str| {
            for name in names {
                nest.admin.set(name, value);
            }
        };
        let push = |names: &[&str]| {
            for name in names {
                nest.admin.del(name);
                nest.admin.command::<u64>(&["RPUSH", name, "data"]);
            }
        };
        let disorders: [(&str, &dyn Fn()); 6] = [
            ("locks that are another's", &|| set(&LOCKS, "another's")),
            ("locks of another type", &|| push(&LOCKS)),
            ("queues of another type", &|| {
                set(&LOCKS, "another's");
                set(&QUEUES, "data");
            }),
            ("fence counters of another type", &|| push(&fences)),
            ("fence counters with a text", &|| set(&fences, "text")),
            ("a full server", &|| nest.admin.command::<()>(&["CONFIG", "SET", "maxmemory", "1"])),
        ];
        for (disorder, begin) in disorders {
            nest.admin.flush();
            begin();
            nest.all_fail(disorder, each_call(&nest.locker).await);
            nest.admin.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        }
        nest.admin.flush();
        nest.pause_all().await;
        let texts = nest.all_fail("pauses", each_call(&nest.locker).await);
        let paused = texts.iter().filter(|text| text.contains(" is repaired")).count();
        assert!(paused > texts.len() / 2, "{texts:#?}");
        nest.locker.drain();
        nest.all_fail("a drained locker", each_call(&nest.locker).await);
    })
    .await;
}

/// Method: the locks of what is held are lost, or become another's, or data of another type.
#[tokio::test]
async fn no_secret_is_shown_by_any_verb_of_a_lost_lock() {
    as_a_request(async |nest: Nest| {
        let disorders: [&dyn Fn(&str); 3] =
            [&|name| nest.admin.del(name), &|name| nest.admin.set(name, "another's"), &|name| {
                nest.admin.del(name);
                nest.admin.command::<u64>(&["RPUSH", name, "data"]);
            }];
        for lose in disorders {
            let guards = async || {
                let plain = nest.lock().acquire().await.unwrap();
                [plain, nest.lock().permits(2).acquire().await.unwrap()]
            };
            let lose_all = || nest.admin.keys("disLock:*").iter().for_each(|name| lose(name));
            let mut outcomes = Vec::new();
            let [plain, permit] = guards().await;
            let set = nest.locker.lock("mail:canary@tree").all_permits(2).acquire().await.unwrap();
            let admin = nest.locker.admin();
            let held = admin.holder(NAME).await.unwrap().unwrap();
            lose_all();
            nest.check("set", &shown(&set));
            outcomes.push(set.leases().extend(LIMIT).await);
            outcomes.push(set.release().await);
            outcomes.push(admin.revoke(&held, KEY, LIMIT).await.map(drop));
            outcomes.push(admin.force_release(&held, KEY).await.map(drop));
            outcomes.push(admin.force_pause(&held, LONG, KEY).await.map(drop));
            outcomes.push(admin.come_first(NAME).await.map(drop));
            outcomes.push(admin.queue("{mail:canary@nest}#1").await.map(drop));
            for guard in [plain, permit] {
                outcomes.push(guard.lease().extend(LIMIT).await);
                outcomes.push(Err(guard.lease().lost().await));
                outcomes.push(guard.release().await);
            }
            nest.admin.flush();
            let [plain, permit] = guards().await;
            lose_all();
            outcomes.push(plain.into_pause(LONG, KEY).await.map(drop));
            outcomes.push(permit.into_pause(LONG, KEY).await.map(drop));
            nest.admin.flush();
            let [plain, permit] = guards().await;
            lose_all();
            for guard in [plain, permit] {
                let error = guard.into_ticket(LONG).await.unwrap_err();
                nest.check("ticket", &everything(&error));
            }
            nest.admin.flush();
            let [plain, permit] = guards().await;
            let tickets = [plain.into_ticket(LONG).await, permit.into_ticket(LONG).await];
            lose_all();
            for ticket in tickets {
                outcomes.push(nest.locker.redeem(ticket.unwrap()).acquire().await.map(drop));
            }
            nest.admin.flush();
            let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(failed > outcomes.len() / 2, "{outcomes:#?}");
            for outcome in outcomes {
                nest.shows(outcome);
            }
        }
    })
    .await;
}

/// The locks, and the gate, of all calls for [`NAME`].
const LOCKS: [&str; 4] = [
    KEY,
    "disLock:{mail:canary@nest}#0",
    "disLock:{mail:canary@nest}#1",
    "disLock:{mail:canary@nest}#2",
];

const QUEUES: [&str; 3] = [
    QUEUE,
    "lockable:queue:#:disLock:{mail:canary@nest}",
    "lockable:queue::disLock:{mail:canary@nest}#0",
];

/// Each kind of call that acquires, without a wait and with one.
async fn each_call(locker: &Locker) -> Vec<Result<(), LockError>> {
    let lock = || locker.lock(NAME);
    let set = || locker.lock_all([NAME, "mail:canary@tree"]);
    // A leader tries again, and shows in its events why.
    drop(tokio::time::timeout(SHORT, lock().lead(|_| async {})).await);
    vec![
        plainly(locker, CANARY).await,
        with_permit(locker, CANARY).await,
        with_all_permits(locker, CANARY).await,
        with_others(locker, CANARY).await,
        lock().wait(SHORT).acquire().await.map(drop),
        lock().permits(2).wait(SHORT).acquire().await.map(drop),
        lock().all_permits(2).wait(SHORT).acquire().await.map(drop),
        set().wait(SHORT).acquire().await.map(drop),
        lock().once().wait(SHORT).acquire().await.map(drop),
        once(locker, CANARY).await,
    ]
}

#[distributed_lock(key = "mail:{who}@nest", locker = locker)]
async fn plainly(locker: &Locker, who: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "mail:{who}@nest", permits = 2, locker = locker)]
async fn with_permit(locker: &Locker, who: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "mail:{who}@nest", permits = all(2), locker = locker)]
async fn with_all_permits(locker: &Locker, who: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(keys = ["mail:{who}@nest", "mail:{who}@tree"], locker = locker)]
async fn with_others(locker: &Locker, who: &str) -> Result<(), LockError> {
    Ok(())
}

#[distributed_lock(key = "mail:{who}@nest", once = "10m", locker = locker)]
async fn once(locker: &Locker, who: &str) -> Result<(), LockError> {
    Ok(())
}

/// A locker that redacts keys, on a server of its own.
struct Nest {
    server: Server,
    proxy: Proxy,
    admin: Admin,
    locker: Locker,
    /// What owner tokens begin with, as far as they were seen in the server.
    origins: Vec<String>,
}

async fn as_a_request(test: impl AsyncFnOnce(Nest)) {
    let (server, proxy) = server_and_proxy();
    let url = proxy.url();
    as_a_request_on(server, proxy, &url, test).await;
}

/// Runs the test as a request, and looks through all events and spans behind it.
async fn as_a_request_on(server: Server, proxy: Proxy, url: &str, test: impl AsyncFnOnce(Nest)) {
    events::keep_secret(CANARY);
    // A release is given up that long after its lease, which one test waits for.
    let locker = ample(url).command_deadline(LIMIT / 4).redact_keys().connect_lazy().unwrap();
    let nest = Nest { admin: server.admin(), server, proxy, locker, origins: Vec::new() };
    RequestId::new("canary-request").scope(test(nest)).await;
    assert_eq!(events::leaks(), [""; 0]);
}

impl Nest {
    fn lock(&self) -> LockRequest {
        self.locker.lock(NAME)
    }

    /// The lock, whose owner token is a secret from now on.
    async fn guard(&mut self) -> LockGuard {
        let guard = self.lock().acquire().await.unwrap();
        let owner = self.admin.get(KEY).unwrap();
        let (origin, _) = owner.split_once('.').expect("an owner token has a point");
        events::keep_secret(origin);
        self.origins.push(origin.to_owned());
        guard
    }

    async fn is_free(&self) {
        wait::until_async(LIMIT, async || self.admin.get(KEY).is_none()).await;
    }

    /// With a reason that names the key in several ways.
    async fn pause_all(&self) {
        let reason = format!("{KEY}, {NAME} and canary@nest is repaired");
        self.lock().acquire().await.unwrap().into_pause(LONG, &reason).await.unwrap();
        let all = self.lock().all_permits(2).acquire().await.unwrap();
        all.into_pauses(LONG, &reason).await.unwrap();
    }

    /// All of these are errors, which show nothing; gives what they show.
    #[track_caller]
    fn all_fail(&self, disorder: &str, outcomes: Vec<Result<(), LockError>>) -> Vec<String> {
        let errors = outcomes.into_iter().enumerate().map(|(at, outcome)| {
            let error = outcome.expect_err(&format!("call {at} beside {disorder}"));
            let text = everything(&error);
            self.check(disorder, &text);
            text
        });
        errors.collect()
    }

    /// An error of this kind, which shows nothing; gives all that it shows.
    #[track_caller]
    fn fails<T: Debug>(&self, kind: LockErrorKind, outcome: Result<T, LockError>) -> String {
        let error = outcome.expect_err("it fails");
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(error.key().is_some_and(|key| key.contains(CANARY)), "{error:?}");
        let text = everything(&error);
        assert!(text.contains("redacted:"), "{text}");
        self.check("error", &text);
        text
    }

    /// The server's words about a command that it does not know.
    #[track_caller]
    fn quotes<T: Debug>(&self, outcome: Result<T, LockError>) {
        let text = self.fails(Refused, outcome);
        assert!(text.contains("unknown command '"), "{text}");
    }

    /// An error, if there is one, which shows nothing.
    #[track_caller]
    fn shows<T: Debug>(&self, outcome: Result<T, LockError>) {
        match outcome {
            Ok(value) => self.check("value", &shown(&value)),
            Err(error) => self.check("error", &everything(&error)),
        }
    }

    #[track_caller]
    fn check(&self, what: &str, text: &str) {
        for secret in self.origins.iter().map(String::as_str).chain([CANARY]) {
            assert!(!text.contains(secret), "{what}: {text}");
        }
        assert!(!has_owner_token(text), "{what}: {text}");
    }
}

#[distributed_lock(key = "mail:{who}@nest", locker = nest.locker)]
async fn decorated(nest: &Nest, who: &str) -> Result<(), LockError> {
    Ok(())
}

fn shown(value: &impl Debug) -> String {
    format!("{value:?}\n{value:#?}")
}

/// Whether the text contains sixteen hexadecimal digits, a point and a number.
fn has_owner_token(text: &str) -> bool {
    let is_token = |part: &[u8]| {
        part[..16].iter().all(u8::is_ascii_hexdigit)
            && part[16] == b'.'
            && part[17].is_ascii_digit()
    };
    text.as_bytes().windows(18).any(is_token)
}
