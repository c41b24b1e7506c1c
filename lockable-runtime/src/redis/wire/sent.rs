use ::redis::{Arg, Cmd};
use tracing::{Level, event_enabled, trace};

/// The target of this crate's events; those of locks are in `telemetry`.
const TARGET: &str = "lockable";

/// Reports commands by their names: the arguments may be keys and owner tokens.
pub(super) fn report<'a>(server: &str, commands: impl IntoIterator<Item = &'a Cmd>) {
    if event_enabled!(target: TARGET, Level::TRACE) {
        let commands = summary(commands.into_iter().map(name));
        trace!(name: "send", target: TARGET, server, commands, "commands were sent");
    }
}

pub(super) fn name(command: &Cmd) -> String {
    match command.args_iter().next() {
        Some(Arg::Simple(name)) => String::from_utf8_lossy(name).into_owned(),
        _ => String::new(),
    }
}

fn summary(names: impl Iterator<Item = String>) -> String {
    let mut counts: Vec<(String, u32)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let shown = counts.into_iter().map(|(name, count)| match count {
        1 => name,
        count => format!("{name} ({count} times)"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_named_without_their_arguments() {
        let get = Cmd::new().arg("GET").arg("order:7").to_owned();
        let scan = Cmd::new().arg("SCAN").arg(0).to_owned();
        let names = [&get, &scan, &get].into_iter().map(name);
        assert_eq!(summary(names), "GET (2 times), SCAN");
    }
}
