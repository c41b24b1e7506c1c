//! The places where a node's answer can be any of them: the requests of each verb.

use std::sync::mpsc::channel;
use std::time::Duration;

use lockable_runtime::__internals::{Place as Found, VerbAttempt};
use lockable_runtime::LockError;
use lockable_tests::{Answer, Cue};

use super::scene::Scene;
use crate::support::LONG;

/// Where the answer is given. A verb's first request has its name; the others are parts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// `SET` of an acquisition.
    Acquire,
    /// The script that seeds its fence counter, in the same request.
    Seed,
    /// `INCR` of a fence counter that the connection has seeded.
    Count,
    /// `GET` of the lock, after a fence counter was found lost.
    Look,
    /// A place in the queue, for a lock that is free.
    Turn,
    /// The same, for one that is held.
    Enqueue,
    Leave,
    Release,
    /// Of a lock that another process has by then.
    ReleaseLost,
    ReleaseTo,
    Renew,
    /// Of one lease among three.
    Batch,
    Inspect,
    /// `SET` behind `ASKING`, at the node to which the slot moves.
    AskedSet,
    /// The same of a release.
    AskedRelease,
    /// `ASKING` itself.
    Asking,
    /// `SSUBSCRIBE`, before a place in a queue is asked for.
    Subscribe,
    /// `CLUSTER SLOTS`, at the first node.
    Slots,
}

pub(super) const PLACES: [Place; 18] = [
    Place::Acquire,
    Place::Seed,
    Place::Count,
    Place::Look,
    Place::Turn,
    Place::Enqueue,
    Place::Leave,
    Place::Release,
    Place::ReleaseLost,
    Place::ReleaseTo,
    Place::Renew,
    Place::Batch,
    Place::Inspect,
    Place::AskedSet,
    Place::AskedRelease,
    Place::Asking,
    Place::Subscribe,
    Place::Slots,
];

/// What the verb needs to have been done before.
pub(super) struct Ready {
    /// Who holds the lock for the verb, where that is another than its own attempt.
    holder: Option<VerbAttempt>,
    others: Vec<VerbAttempt>,
    /// Who is queued by the release, or is handed the lock.
    next: Option<VerbAttempt>,
}

impl Place {
    /// Brings everything to where the verb is asked for next.
    pub(super) async fn prepare(self, scene: &mut Scene) -> Ready {
        let mut ready = Ready { holder: None, others: Vec::new(), next: None };
        if self == Self::Slots {
            return ready;
        }
        // It knows the nodes, and is connected to the first. A busy machine may miss a short deadline.
        while scene.verbs.inspect(&scene.key).await.is_err() {}
        match self {
            Self::Count | Self::Look => scene.hold_and_release().await,
            Self::Enqueue | Self::Leave | Self::Subscribe => {
                ready.holder = Some(scene.held().await);
            }
            Self::Release
            | Self::ReleaseLost
            | Self::ReleaseTo
            | Self::Renew
            | Self::Batch
            | Self::AskedRelease
            | Self::Inspect => {
                scene.token = scene.verbs.acquire(&scene.attempt).await.unwrap().unwrap();
            }
            _ => {}
        }
        match self {
            Self::Look => scene.admin(0).del(&scene.fence()),
            Self::Leave => drop(scene.verbs.enqueue(&scene.attempt).await.unwrap()),
            Self::Subscribe => scene.verbs.listen(channel().0),
            Self::ReleaseLost => {
                scene.admin(0).del(&scene.key);
                ready.holder = Some(scene.held().await);
            }
            Self::Batch => ready.others = scene.hold_others().await,
            Self::ReleaseTo => {
                ready.next = Some(scene.verbs.attempt(&scene.key, LONG, None).unwrap());
            }
            Self::AskedSet | Self::AskedRelease | Self::Asking => scene.move_key_alone(),
            _ => {}
        }
        ready
    }

    /// The stub node, and the commands to it that the answer is for.
    pub(super) fn cue(self, scene: &Scene) -> (usize, Cue) {
        const SCRIPT: [&str; 2] = ["EVALSHA", "EVAL"];
        let key = &scene.key;
        match self {
            Self::Acquire => (0, Cue::of(["SET"]).about(key)),
            Self::Seed => (0, Cue::of(SCRIPT).about(scene.fence())),
            Self::Count => (0, Cue::of(["INCR"]).about(scene.fence())),
            Self::Look => (0, Cue::of(["GET"]).about(key)),
            Self::AskedSet => (1, Cue::of(["SET"]).about(key)),
            Self::AskedRelease => (1, Cue::of(SCRIPT).about(key)),
            Self::Asking => (1, Cue::of(["ASKING"])),
            Self::Subscribe => (0, Cue::of(["SSUBSCRIBE"])),
            Self::Slots => (0, Cue::of(["CLUSTER SLOTS"])),
            _ => (0, Cue::of(SCRIPT).about(key)),
        }
    }

    /// Asks for the verb; the word is `done`, unless it found something else.
    pub(super) async fn act(self, scene: &Scene, ready: &Ready) -> Result<String, LockError> {
        let Scene { verbs, attempt, key, token, .. } = scene;
        Ok(match self {
            Self::Acquire
            | Self::Seed
            | Self::Count
            | Self::Look
            | Self::AskedSet
            | Self::Asking
            | Self::Slots => match verbs.acquire(attempt).await? {
                Some(granted) if granted > *token => "done".to_owned(),
                Some(granted) => format!("granted with {granted} after {token}"),
                None => "busy".to_owned(),
            },
            Self::Turn | Self::Enqueue | Self::Subscribe => match verbs.enqueue(attempt).await? {
                Found::Granted(grant) if self == Self::Turn && grant.1[0] > *token => {
                    "done".to_owned()
                }
                Found::Queued(_) if self != Self::Turn => "done".to_owned(),
                found => format!("{found:?}"),
            },
            Self::Leave => {
                verbs.leave(attempt).await?;
                "done".to_owned()
            }
            Self::Release | Self::ReleaseLost | Self::AskedRelease => {
                let (found, _) = verbs.release(attempt, None, Duration::ZERO).await?;
                let expected = if self == Self::ReleaseLost { "Taken" } else { "Released" };
                done_if(&format!("{found:?}"), expected)
            }
            Self::ReleaseTo => {
                let next = ready.next.as_ref();
                let (found, _) = verbs.release(attempt, next, Duration::ZERO).await?;
                done_if(&format!("{found:?}"), "Released")
            }
            Self::Renew => {
                let renewed = verbs.renew(&[(attempt.clone(), Some(LONG))]).await?;
                done_if(&format!("{renewed:?}"), "[Held]")
            }
            Self::Batch => {
                let [first, last] = &ready.others[..] else { panic!("there are two others") };
                let batch = [first, attempt, last].map(|one| (one.clone(), Some(LONG)));
                let mut outcomes = verbs.renew_each(&batch).await?;
                let own = outcomes.remove(1);
                let others: Vec<_> = outcomes.into_iter().collect::<Result<_, _>>()?;
                assert_eq!(format!("{others:?}"), "[Held, Held]", "those of the others");
                done_if(&format!("{:?}", own?), "Held")
            }
            Self::Inspect => match verbs.inspect(key).await? {
                Some((owner, _)) if owner == attempt.owner() => "done".to_owned(),
                _ => "lost".to_owned(),
            },
        })
    }

    /// Ends what was prepared.
    pub(super) async fn end(self, scene: &Scene, ready: Ready) {
        for attempt in ready.others.iter().chain(&ready.holder) {
            let (found, _) = scene.other.release(attempt, None, Duration::ZERO).await.unwrap();
            assert_eq!(format!("{found:?}"), "Released", "what another process holds");
        }
        if let Some(next) = &ready.next {
            scene.other.leave(next).await.unwrap();
        }
    }
}

fn done_if(found: &str, expected: &str) -> String {
    if found == expected { "done".to_owned() } else { found.to_owned() }
}

impl Scene {
    pub(super) async fn hold_and_release(&mut self) {
        let attempt = self.verbs.attempt(&self.key, LONG, None).unwrap();
        self.token = self.verbs.acquire(&attempt).await.unwrap().unwrap();
        self.verbs.release(&attempt, None, Duration::ZERO).await.unwrap();
    }

    /// Another process holds the lock.
    async fn held(&mut self) -> VerbAttempt {
        let attempt = self.other.attempt(&self.key, LONG, None).unwrap();
        self.token = self.other.acquire(&attempt).await.unwrap().unwrap();
        attempt
    }

    async fn hold_others(&self) -> Vec<VerbAttempt> {
        let mut others = Vec::new();
        for number in 0..2 {
            let (key, _) = super::scene::fresh(&format!("other{number}"));
            let attempt = self.verbs.attempt(&key, LONG, None).unwrap();
            self.verbs.acquire(&attempt).await.unwrap().unwrap();
            others.push(attempt);
        }
        others
    }

    /// The slot moves, and the lock is, or would be, at the other node already.
    pub(super) fn move_key_alone(&self) {
        self.move_keys(&[&self.key]);
        let about = |names: [&str; 4]| Cue::of(names).about(&self.key);
        let asks = Answer::error(self.elsewhere("ASK"));
        self.stub_nodes.answer(0, about(["SET", "GET", "EVALSHA", "EVAL"]), asks);
    }
}
