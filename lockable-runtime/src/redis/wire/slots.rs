//! A node's reply to `CLUSTER SLOTS`, as shards or as its flaw.

use ::redis::Value;

use super::flaw::{Flaw, lacking};
use crate::findings::{Code, Finding, Severity};
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::opener::Target;
use crate::redis::connect::shards::{Shard, shards};
use crate::redis::fault;

pub(crate) fn read(
    reply: Option<Value>,
    asked: &Endpoint,
    target: &Target,
) -> Result<Vec<Shard>, Flaw> {
    let error = match reply.unwrap_or(Value::Nil).extract_error() {
        Ok(reply) => return shards(&reply, asked).ok_or_else(|| Flaw::unexpected(NAME, target)),
        Err(error) => error,
    };
    if fault::is_no_node(&error) {
        let finding = Finding::new(Severity::Error, Code::NotACluster, NO_NODE);
        let url = target.url_of(asked);
        return Err(Flaw::unfit(finding.advise(format!("write `{url}`")), target));
    }
    let is_right = fault::is_missing_right(&error);
    let flaw = Flaw::answered(NAME, error, "", target);
    let lacks = || lacking(Severity::Error, "+cluster|slots", target.user(), EFFECT);
    Err(if is_right { Flaw { finding: lacks(), ..flaw } } else { flaw })
}

const NAME: &str = "`CLUSTER SLOTS`";
const NO_NODE: &str = "this server is in no cluster";
const EFFECT: &str = "no lock can be acquired";
