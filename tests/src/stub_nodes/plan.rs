//! What the stub nodes of a test do, as plain state that every connection reads.

use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Notify;

use super::answers::{Answer, Cue, Hold, Host};
use super::disorder::{Disorder, Draw, Garbled};
use super::garble::Garble;
use crate::cluster::{SLOTS, slot};
use crate::dice::Dice;

/// What becomes of a command.
#[derive(Debug)]
pub(super) enum Fate {
    /// The server answers it.
    Passes,
    /// The stub node answers it with these bytes.
    Answered(Vec<u8>),
    /// The same, once the test says so.
    AnsweredLate(Vec<u8>, Arc<Notify>),
    /// The server answers it, and the stub node makes this of the reply.
    Garbled(Garble),
    /// The same, as a seed says.
    Disordered(Disorder, Dice),
    /// The stub node answers it so.
    Given(Garbled),
    BreaksBefore,
    BreaksAfter,
    Silent,
    /// The server answers it once it may go.
    Held(Hold),
}

#[derive(Debug)]
pub(super) struct Plan {
    addrs: Vec<SocketAddr>,
    /// The stub node of each slot.
    pub(super) owners: Vec<usize>,
    pub(super) host: Host,
    /// The stub nodes that take commands behind `ASKING`.
    pub(super) importing: Vec<usize>,
    /// The first one that takes a command counts.
    pub(super) scenes: Vec<(usize, Cue, Answer)>,
    /// What has come, and to which stub node, while nothing is garbled.
    pub(super) seen: Vec<(usize, Vec<String>)>,
    pub(super) kind: Kind,
    /// What garbles replies and messages, where anything does.
    pub(super) draw: Option<Draw>,
}

/// What is behind the stub nodes, as clients see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cluster,
    /// A proxy that takes commands about one slot each.
    OneSlotEach,
    Server,
}

impl Plan {
    /// The first stub node has all slots but the last one of each other.
    pub(super) fn new(addrs: Vec<SocketAddr>) -> Self {
        let importing = (0..addrs.len()).collect();
        let mut owners = vec![0; usize::from(SLOTS)];
        (1..addrs.len())
            .zip(owners.iter_mut().rev())
            .for_each(|(stub_node, owner)| *owner = stub_node);
        let (scenes, seen) = (Vec::new(), Vec::new());
        let kind = Kind::Cluster;
        Self { addrs, owners, host: Host::Address, importing, scenes, seen, kind, draw: None }
    }

    /// As if the stub nodes had just been opened.
    pub(super) fn reset(&mut self) {
        *self = Self { kind: self.kind, ..Self::new(mem::take(&mut self.addrs)) };
    }

    pub(super) fn fate(&mut self, stub_node: usize, command: Vec<String>, is_asking: bool) -> Fate {
        let answer = self.scenes.iter_mut().find_map(|(of, cue, answer)| {
            (*of == stub_node && cue.takes(&command)).then(|| answer.clone())
        });
        let fate = match answer {
            Some(Answer::Error(text)) => Fate::Answered(error(&text)),
            Some(Answer::LateError(text, told)) => Fate::AnsweredLate(error(&text), told),
            Some(Answer::Garbled(garble)) => Fate::Garbled(garble),
            Some(Answer::Bytes(bytes)) => Fate::Answered(bytes.into_bytes()),
            Some(Answer::Number(number)) => Fate::Answered(format!(":{number}\r\n").into_bytes()),
            Some(Answer::Numbers(numbers)) => Fate::Answered(list(&numbers)),
            Some(Answer::BreakBefore) => Fate::BreaksBefore,
            Some(Answer::BreakAfter) => Fate::BreaksAfter,
            Some(Answer::Silence) => Fate::Silent,
            Some(Answer::Held(hold)) => Fate::Held(hold),
            None => self.usual(stub_node, &command, is_asking),
        };
        let drawn = self.draw.as_mut().and_then(|draw| draw.next(&command));
        let fate = match (fate, drawn) {
            (Fate::Passes, Some((disorder, dice))) => Fate::Disordered(disorder, dice),
            (Fate::Answered(reply), Some((disorder, dice))) => {
                Fate::Given(disorder.of(dice, &reply))
            }
            (fate, _) => fate,
        };
        // A client that connects again and again sends its scripts each time.
        if self.draw.is_none() {
            self.seen.push((stub_node, command));
        }
        fate
    }

    /// What becomes of messages, which answer no command.
    pub(super) fn messages(&mut self, messages: &[Vec<u8>]) -> Garbled {
        let (mut bytes, mut ends) = (Vec::new(), false);
        for message in messages {
            match self.draw.as_mut().and_then(|draw| draw.next(&[])) {
                Some((disorder, dice)) => {
                    let garbled = disorder.of(dice, message);
                    bytes.extend(garbled.bytes);
                    ends |= garbled.ends;
                }
                None => bytes.extend_from_slice(message),
            }
        }
        Garbled { bytes, ends }
    }

    fn usual(&self, stub_node: usize, command: &[String], is_asking: bool) -> Fate {
        let is_slots = command.len() == 2
            && command[0].eq_ignore_ascii_case("CLUSTER")
            && command[1].eq_ignore_ascii_case("SLOTS");
        if is_slots && self.kind == Kind::Cluster {
            return Fate::Answered(self.slots());
        }
        let mut slots = keys(command).iter().map(|key| slot(key));
        let Some(slot) = slots.next() else { return Fate::Passes };
        if slots.any(|other| other != slot) && self.kind != Kind::Server {
            return Fate::Answered(error("CROSSSLOT Keys in request don't hash to the same slot"));
        }
        let owner = self.owners[usize::from(slot)];
        let is_taken = is_asking && self.importing.contains(&stub_node);
        if owner == stub_node || is_taken || self.kind != Kind::Cluster {
            return Fate::Passes;
        }
        let addr = self.addrs[owner];
        let host = match self.host {
            Host::Address => addr.ip().to_string(),
            Host::Unknown => "?".to_owned(),
            Host::Empty | Host::Nil => String::new(),
        };
        Fate::Answered(error(&format!("MOVED {slot} {host}:{}", addr.port())))
    }

    fn slots(&self) -> Vec<u8> {
        let mut ranges: Vec<(usize, usize, usize)> = Vec::new();
        for (slot, owner) in self.owners.iter().enumerate() {
            match ranges.last_mut() {
                Some((_, last, of)) if of == owner => *last = slot,
                _ => ranges.push((slot, slot, *owner)),
            }
        }
        let entries = ranges.iter().map(|(first, last, owner)| {
            let addr = self.addrs[*owner];
            let host = match self.host {
                Host::Address => bulk(&addr.ip().to_string()),
                Host::Unknown => bulk("?"),
                Host::Empty => bulk(""),
                Host::Nil => "$-1\r\n".to_owned(),
            };
            let node = format!("*3\r\n{host}:{}\r\n{}", addr.port(), bulk(&owner.to_string()));
            format!("*3\r\n:{first}\r\n:{last}\r\n{node}")
        });
        let entries: Vec<_> = entries.collect();
        format!("*{}\r\n{}", entries.len(), entries.concat()).into_bytes()
    }
}

fn error(text: &str) -> Vec<u8> {
    format!("-{text}\r\n").into_bytes()
}

fn list(numbers: &[i64]) -> Vec<u8> {
    let each: Vec<_> = numbers.iter().map(|number| format!(":{number}\r\n")).collect();
    format!("*{}\r\n{}", each.len(), each.concat()).into_bytes()
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// The keys of a command, or the shard channel, as far as locks have such commands.
fn keys(command: &[String]) -> &[String] {
    const ONE: &str =
        "SET GET INCR PTTL PEXPIRE LPOS RPUSH LPOP LREM LINDEX SPUBLISH SSUBSCRIBE TYPE";
    let Some((name, rest)) = command.split_first() else { return &[] };
    match name.to_uppercase().as_str() {
        "EVAL" | "EVALSHA" => {
            let count = rest.get(1).and_then(|count| count.parse::<usize>().ok());
            count.and_then(|count| rest.get(2..2 + count)).unwrap_or_default()
        }
        "DEL" | "EXISTS" | "MGET" => rest,
        name if ONE.split(' ').any(|one| one == name) => &rest[..rest.len().min(1)],
        _ => &[],
    }
}
