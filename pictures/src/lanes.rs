//! Lanes above one axis of time: what lasts is a bar, and what happens is a mark.
//!
//! The data are lines: `axis END STEP` in milliseconds, and for each lane `lane TITLE` with its `span KIND FROM TO`,
//! `mark KIND AT` and `note AT TEXT` behind it.

use crate::svg::{self, GRID, INK, SANS, bar, line, text};

pub(crate) fn draw(data: &str) -> String {
    let mut lines = data.lines();
    let axis = lines.next().and_then(Axis::of).expect("an axis first");
    let count = data.lines().filter(|line| line.starts_with("lane ")).count();
    let bottom = TOP + LANE * f64::from(u32::try_from(count).expect("few lanes"));
    let (mut content, mut top) = (axis.drawn(bottom), TOP - LANE);
    for entry in lines {
        if entry.starts_with("lane ") {
            top += LANE;
        }
        content += &axis.entry(entry, top);
    }
    content += &legend(data, bottom + 52.0);
    svg::sheet(WIDTH, bottom + 72.0, "white", SANS, &content)
}

struct Axis {
    end: f64,
    step: f64,
}

impl Axis {
    fn of(line: &str) -> Option<Self> {
        let (end, step) = line.strip_prefix("axis ")?.split_once(' ')?;
        Some(Self { end: end.parse().ok()?, step: step.parse().ok()? })
    }

    fn x(&self, millis: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * millis.min(self.end) / self.end
    }

    fn drawn(&self, bottom: f64) -> String {
        let (mut drawn, mut millis) = (String::new(), 0.0);
        while millis <= self.end {
            let (x, label) = (self.x(millis), format!("{} s", millis / 1000.0));
            drawn += &line((x, TOP - 6.0), (x, bottom), GRID, 1.0);
            drawn += &text(x, bottom + 18.0, "middle", INK, &label);
            millis += self.step;
        }
        drawn
    }

    fn entry(&self, entry: &str, top: f64) -> String {
        let (kind, rest) = entry.split_once(' ').expect("a kind and more");
        let words: Vec<_> = rest.splitn(3, ' ').collect();
        match (kind, &words[..]) {
            ("lane", _) => text(LEFT - 12.0, top + 22.0, "end", INK, rest),
            ("span", [kind, from, to]) => self.span(Kind::of(kind), millis(from), millis(to), top),
            ("mark", [kind, at]) => self.mark(Kind::of(kind), millis(at), top),
            ("note", [at, ..]) => self.note(millis(at), &rest[at.len() + 1..], top),
            _ => panic!("`{entry}` is no entry"),
        }
    }

    fn span(&self, kind: &Kind, from: f64, to: f64, top: f64) -> String {
        let (x, width) = (self.x(from), (self.x(to) - self.x(from)).max(1.0));
        let inset = (BAR - kind.height) / 2.0;
        bar((x, top + 4.0 + inset), (width, kind.height), kind.colour)
    }

    fn mark(&self, kind: &Kind, at: f64, top: f64) -> String {
        let x = self.x(at);
        line((x, top + 1.0), (x, top + 7.0 + BAR), kind.colour, 2.5)
    }

    /// Below the bars, on the side that has room.
    fn note(&self, at: f64, note: &str, top: f64) -> String {
        let x = self.x(at);
        let anchor = if at > self.end * 0.5 { "end" } else { "start" };
        text(x, top + BAR + 21.0, anchor, INK, note)
    }
}

/// What a colour means.
struct Kind {
    name: &'static str,
    colour: &'static str,
    height: f64,
    meaning: &'static str,
}

impl Kind {
    fn of(name: &str) -> &'static Self {
        let known = KINDS.iter().find(|kind| kind.name == name);
        known.unwrap_or_else(|| panic!("`{name}` is no kind of span or mark"))
    }
}

fn legend(data: &str, y: f64) -> String {
    let is_used = |kind: &&Kind| {
        let starts = [format!("span {} ", kind.name), format!("mark {} ", kind.name)];
        data.lines().any(|line| starts.iter().any(|start| line.starts_with(start)))
    };
    let (mut drawn, mut x) = (String::new(), 24.0);
    for kind in KINDS.iter().filter(is_used) {
        drawn += &bar((x, y - 11.0), (14.0, 13.0), kind.colour);
        drawn += &text(x + 20.0, y, "start", INK, kind.meaning);
        x += 48.0 + 6.4 * f64::from(u32::try_from(kind.meaning.len()).expect("a short text"));
    }
    drawn
}

fn millis(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number of milliseconds"))
}

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 970.0;
const TOP: f64 = 24.0;
const LANE: f64 = 66.0;
const BAR: f64 = 26.0;

const KINDS: [Kind; 8] = [
    Kind { name: "taken", colour: "#bcdcf2", height: 26.0, meaning: "the lock is taken" },
    Kind { name: "body", colour: "#009e73", height: 12.0, meaning: "the body runs" },
    Kind { name: "renewed", colour: "#0072b2", height: 26.0, meaning: "renewal" },
    Kind { name: "lost", colour: "#d55e00", height: 26.0, meaning: "the lock is deleted" },
    Kind { name: "primary", colour: "#56b4e9", height: 26.0, meaning: "primary" },
    Kind { name: "replica", colour: "#cccccc", height: 26.0, meaning: "replica" },
    Kind { name: "sections", colour: "#cc79a7", height: 12.0, meaning: "a busy lock is passed on" },
    Kind { name: "switch", colour: "#d55e00", height: 26.0, meaning: "killed, promoted" },
];
