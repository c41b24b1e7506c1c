//! Requests for the slot maps of nodes.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::maps::Map;
use super::server::Server;
use crate::core::backend::Fault;
use crate::core::process::clock::{Moment, boot_time, timer_on, within};
use crate::core::types::slot::Slot;
use crate::redis::connect::driven::Driven;
use crate::redis::connect::endpoint::Endpoint;
use crate::redis::connect::node::Node;
use crate::redis::connect::opener::Opener;
use crate::redis::fault;
use crate::redis::wire::command::{self, pipeline};
use crate::redis::wire::slots;

/// Collects the maps of most of `count` nodes, or of all that answer.
pub(super) async fn collect_most_of(
    count: usize,
    running: &mut JoinSet<MapAnswer>,
    (maps, faults): (&mut Vec<Map>, &mut Vec<Fault>),
) {
    while maps.len() * 2 <= count
        && let Some(answered) = running.join_next().await
    {
        match answered {
            Ok(Ok(map)) => maps.push(map),
            Ok(Err(fault)) => faults.push(fault),
            // It was cancelled with its runtime.
            Err(_) => {}
        }
    }
}

/// As [`collect_most_of`], but stops shortly after the first map: a hanging node would answer only at its limit.
pub(super) async fn collect_soon(
    running: &mut JoinSet<MapAnswer>,
    (maps, faults): (&mut Vec<Map>, &mut Vec<Fault>),
    timers: &Handle,
) {
    let enough = running.len() / 2 + 1;
    let mut end = None;
    while maps.len() < enough {
        let rest = end.map_or(Duration::MAX, |end: Moment| end.since(boot_time()));
        let answered = within(|| timer_on(timers, rest), running.join_next()).await;
        match answered.flatten() {
            Some(Ok(Ok(map))) => {
                maps.push(map);
                end.get_or_insert_with(|| boot_time().after(GRACE));
            }
            Some(Ok(Err(fault))) => faults.push(fault),
            Some(Err(_)) => {}
            None => return,
        }
    }
}

/// Over the background's connection to a master.
pub(super) async fn request_map(server: Arc<Server>, limit: Duration) -> MapAnswer {
    let opener = &server.connections.opener;
    let connection = server.connections.ready().await?;
    let query = pipeline([command::slots()]);
    let Some(replies) = opener.within(limit, connection.call(&query)).await else {
        connection.unanswered(limit);
        return Err(Fault::no_answer(&opener.server, limit));
    };
    let reply = replies?.pop();
    let Some(endpoint) = server.endpoint() else { return Ok(Map::new()) };
    Ok(slots::read(reply, endpoint, &connection.target)?)
}

/// Over a new connection without the handshake, to any other node.
pub(super) async fn request_map_anew(
    opener: Opener,
    endpoint: Endpoint,
    limit: Duration,
) -> MapAnswer {
    let opener = opener.of_node(&Arc::new(Node::new(endpoint.clone(), Slot::default())));
    let answered = async {
        let target = opener.target(&opener.login().await?).await?;
        let failed = |error| fault::About::Login(target.is_given).fault(&target.server, &error);
        let mut driven = Driven::open(&target.client).await.map_err(failed)?;
        target.client.sends("CLUSTER SLOTS");
        let reply = driven.commands.send_packed_command(&command::slots()).await;
        let reply = target.client.explain(reply).map_err(failed)?;
        Ok(slots::read(Some(reply), &endpoint, &target)?)
    };
    let answer = opener.within(limit, answered).await;
    answer.unwrap_or_else(|| {
        let (message, advice) = opener.client.progress.late("no answer", limit);
        Err(Fault::unavailable(format!("{}: {message}", opener.server)).advise(advice))
    })
}

const GRACE: Duration = Duration::from_millis(100);

pub(super) type MapAnswer = Result<Map, Fault>;
