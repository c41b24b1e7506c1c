//! The campaigns of a worker, and what the library promises of leaders.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use super::call::Call;
use super::keys::lock_key;
use super::rules::Leader;
use super::user::User;
use super::worker::Worker;
use crate::core::lease::Lease;
use crate::core::locker::lead::Leadership;
use crate::core::locker::request::LockRequest;
use crate::core::process::clock::{Moment, tokio_time};

/// The least time between two terms.
const PAUSE: Duration = Duration::from_secs(1);

impl Worker {
    /// Campaigns until a body resigns.
    pub(super) async fn lead(&self, call: &Call) -> &'static str {
        let world = &self.process.world;
        world.count("campaigns");
        let campaign = Campaign::of(self, call);
        // It is dropped after the future of the campaigns.
        let ends = Ends(Arc::clone(&campaign));
        let (acquirer, options) = (Arc::clone(&self.acquirer), call.options.clone());
        let request = LockRequest::new(acquirer, Ok(lock_key(call.keys[0])), 0, options);
        let leading = request.lead(move |lease| Arc::clone(&campaign).term(lease));
        drop(ends.0.probe.set(leading.watch()));
        match leading.await {
            Ok(()) => "leaders resigned",
            Err(error) if error.is_body_finished() => "leaders that resigned late",
            Err(error) => {
                world.violation(|_| format!("the campaigns ended: {error}"));
                "campaigns failed"
            }
        }
    }
}

struct Campaign {
    worker: Worker,
    call: Call,
    number: u64,
    probe: OnceLock<Leadership>,
    /// The end of the last term.
    ended: Mutex<Option<Moment>>,
}

impl Campaign {
    fn of(worker: &Worker, call: &Call) -> Arc<Self> {
        let (worker, call) = (worker.clone(), call.clone());
        let number = worker.next_number();
        let (probe, ended) = (OnceLock::new(), Mutex::default());
        Arc::new(Self { worker, call, number, probe, ended })
    }

    async fn term(self: Arc<Self>, lease: Lease) {
        let mut term = Term::begin(&self, lease);
        self.worker.steps(&self.call, &term.users).await;
        term.resigns = true;
    }

    fn shows_leader(&self) -> bool {
        self.probe.get().is_some_and(Leadership::is_leader)
    }
}

/// From an election until the body is dropped.
struct Term<'a> {
    campaign: &'a Campaign,
    lease: Lease,
    users: Vec<User>,
    is_renewable: bool,
    resigns: bool,
}

impl<'a> Term<'a> {
    fn begin(campaign: &'a Campaign, lease: Lease) -> Self {
        let Campaign { worker, call, number, probe, .. } = campaign;
        let world = &worker.process.world;
        let is_renewable = worker.is_long_enough(&lease);
        let users = worker.users(std::slice::from_ref(&lease));
        worker.begins(call, &users);
        world.count("terms of leaders");
        if let Some(ended) = *campaign.ended.lock().unwrap() {
            world.count("leaders elected again");
            if tokio_time().since(ended) < PAUSE {
                world.violation(|_| "a leader is elected again too soon".to_owned());
            }
        }
        if !campaign.shows_leader() {
            world.violation(|_| {
                format!("hold {} does not show that it leads", users[0].hold.number)
            });
        }
        let leader = Leader { hold: users[0].hold.clone(), probe: probe.get().unwrap().clone() };
        world.rules().leads(*number, leader);
        Self { campaign, lease, users, is_renewable, resigns: false }
    }
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        let Campaign { worker, call, ended, .. } = self.campaign;
        *ended.lock().unwrap() = Some(tokio_time());
        let world = &worker.process.world;
        match self.lease.still_held() {
            Err(error) => world.count(worker.ended(call, self.is_renewable, &error)),
            Ok(()) if self.resigns => {}
            Ok(()) => world.count("leaders dropped"),
        }
    }
}

struct Ends(Arc<Campaign>);

impl Drop for Ends {
    fn drop(&mut self) {
        let Campaign { worker, number, .. } = &*self.0;
        let world = &worker.process.world;
        world.rules().leads_no_more(*number);
        if self.0.shows_leader() {
            world.violation(|_| format!("campaign {number} shows a leader after its end"));
        }
    }
}
