use crate::core::backend::Fault;
use crate::core::types::error::LockErrorKind;
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::opener::{Opener, Target};
use crate::redis::wire::session::Session;

pub(super) async fn target(opener: &Opener) -> Result<Target, Finding> {
    let error = |code, Fault { message, advice, .. }| {
        Finding::new(Severity::Error, code, message).advise(*advice)
    };
    let login = opener.login().await.map_err(|fault| error(Code::Credentials, fault))?;
    opener.connecting(opener.target(&login)).await.map_err(|fault| {
        let is_refused = fault.kind == LockErrorKind::Refused;
        error(if is_refused { Code::Refused } else { Code::Unreachable }, fault)
    })
}

pub(super) async fn connect(opener: &Opener, target: Target) -> Result<Session<'_>, Finding> {
    Ok(Session::connect(opener, target, false, opener.command_deadline).await?)
}

pub(super) async fn open(opener: &Opener) -> Result<Session<'_>, Finding> {
    connect(opener, target(opener).await?).await
}
