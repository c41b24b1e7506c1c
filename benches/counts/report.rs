//! What was measured, for those who read it.

use crate::compare::bare_of;
use crate::figures::Figures;
use crate::measure::Pairs;

/// A line for each case.
pub(crate) fn of(pairs: &Pairs) -> String {
    let lines = pairs.iter().map(|(name, figures)| {
        let bare = bare_of(name).and_then(|bare| pairs.get(&bare));
        line(name, figures, bare.unwrap_or(figures))
    });
    [HEAD.to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn line(name: &str, figures: &Figures, bare: &Figures) -> String {
    let Figures { client, server, commands, bytes, calls } = figures;
    let (client_over, server_over) = (client / bare.client, server / bare.server);
    let all_calls = figures.all_calls();
    let calls = calls.iter().map(|(call, calls)| format!("{call} {calls}"));
    let calls = calls.collect::<Vec<_>>().join(", ");
    format!(
        "{name:<45} {client:>7} {client_over:>5.2} {server:>7} {server_over:>5.2} {commands:>9} \
         {bytes:>7} {all_calls:>7.2} ({calls})"
    )
}

const HEAD: &str = "\
a pair                                         client  over  server  over  commands   bytes   calls
                                                       bare          bare";
