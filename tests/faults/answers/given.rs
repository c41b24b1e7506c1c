//! What a node answers, and what the servers behind the stub nodes are brought to for that.

use lockable_tests::{Answer, Cue, Garble, Host};

use super::scene::Scene;

/// What is answered, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The slot is at the other node, with all that was there.
    Moved(Host),
    /// The lock is at the other node, and the rest is not.
    Asks,
    /// The same where the other node does not take it.
    AsksInVain,
    /// Some keys of a script are at the other node.
    Split,
    /// An error that names the other node, so often.
    Names(&'static str, usize),
    /// An error, so often.
    Error(&'static str, usize),
    BreakBefore(usize),
    BreakAfter,
    /// What is made of the first reply.
    Garbled(Garble),
    /// The lock is at the other node, which hangs.
    AsksSilence,
}

impl Given {
    pub(super) fn is_over_with_the_case(self) -> bool {
        !matches!(self, Self::Moved(_) | Self::Asks | Self::Split)
    }

    /// A request and five redirects, or as many as there are pauses within the command deadline: a host that no one
    /// knows is waited for.
    pub(super) fn most_requests(self) -> usize {
        match self {
            Self::Moved(Host::Unknown) => 20,
            Self::Names(..) | Self::AsksInVain | Self::Moved(_) => 7,
            _ => 20,
        }
    }

    pub(super) fn play(self, scene: &Scene, stub_node: usize, cue: Cue) {
        let named =
            |code| format!("{code} {} {}", scene.slot, scene.stub_nodes.addr(1 - stub_node));
        let answer = |cue, answer| scene.stub_nodes.answer(stub_node, cue, answer);
        match self {
            Self::Moved(host) => {
                scene.stub_nodes.name_hosts(host);
                scene.move_slot();
            }
            Self::Asks => scene.move_key_alone(),
            Self::AsksInVain => {
                scene.stub_nodes.take_asking(1, false);
                answer(cue, Answer::error(named("ASK")));
            }
            Self::Split => {
                scene.move_key_alone();
                let scripts = Cue::of(["EVALSHA", "EVAL"]).about(scene.queue());
                let split = Answer::error(TRYAGAIN);
                scene.stub_nodes.answer(0, scripts, split);
            }
            Self::Names(code, times) => answer(cue.times(times), Answer::error(named(code))),
            Self::Error(text, times) => answer(cue.times(times), Answer::error(text)),
            Self::BreakBefore(times) => answer(cue.times(times), Answer::BreakBefore),
            Self::BreakAfter => answer(cue.times(1), Answer::BreakAfter),
            Self::Garbled(garble) => answer(cue.times(1), Answer::Garbled(garble)),
            Self::AsksSilence => {
                scene.move_key_alone();
                scene.stub_nodes.answer(
                    1,
                    Cue::of(["EVALSHA", "EVAL"]).about(&scene.key).times(1),
                    Answer::Silence,
                );
            }
        }
    }
}

pub(super) const TRYAGAIN: &str = "TRYAGAIN Multiple keys request during rehashing of slot";
