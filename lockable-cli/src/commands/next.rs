//! Who has a lock after a hold has ended.

use lockable_runtime::HolderKind;
use lockable_runtime::admin::{Admin, HeldLock};
use serde::Serialize;

use crate::output::lock::{ProcessLine, place};
use crate::process_index::ProcessIndex;

/// Who has the lock now.
#[derive(Serialize)]
pub(super) struct Next<'a> {
    id: String,
    request_id: Option<&'a str>,
    process: Option<ProcessLine<'a>>,
    #[serde(skip)]
    pub(super) words: String,
}

impl<'a> Next<'a> {
    pub(super) fn of(now: &'a HeldLock, process_index: &'a ProcessIndex) -> Self {
        let holder = now.holder();
        let (id, known) = (holder.id().to_string(), process_index.find(holder.process()));
        let who = holder.request_id().map(|identity| format!("{identity}, ")).unwrap_or_default();
        let words = format!("; next: {who}{}, with the id {id}", place(known));
        let process = ProcessLine::of(holder.process(), process_index);
        Self { id, request_id: holder.request_id(), process, words }
    }
}

/// Who has the lock now, where that is known: it is no failure of the release that it is not.
pub(super) async fn next(admin: &Admin, held: &HeldLock) -> Option<HeldLock> {
    let now = admin.holder(held.name()).await.ok().flatten()?;
    let is_next = now.holder().kind() == HolderKind::Exclusive;
    (is_next && now.holder().id() != held.holder().id()).then_some(now)
}
