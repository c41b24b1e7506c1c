//! A picture with two logarithmic axes.

use std::fmt::Write;

/// Sections a second by the number of waiters, from few to many.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(usize, f64)>,
}

pub(crate) fn picture(lines: &[Line]) -> String {
    let scale = Scale::of(lines);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"14\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    svg += &scale.axes();
    let labels = label_heights(lines, &scale);
    for ((line, label), colour) in lines.iter().zip(labels).zip(COLOURS.into_iter().cycle()) {
        svg += &scale.drawn(line, label, colour);
    }
    svg + "</svg>\n"
}

/// From numbers to places.
struct Scale {
    /// Powers of ten.
    bottom: i32,
    top: i32,
}

impl Scale {
    fn of(lines: &[Line]) -> Self {
        let rates = lines.iter().flat_map(|line| &line.points).map(|(_, rate)| rate.max(1.0));
        let powers: Vec<f64> = rates.map(f64::log10).collect();
        let least = powers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = powers.iter().copied().fold(1.0, f64::max);
        Self { bottom: whole(least.min(most).floor()), top: whole(most.ceil()) }
    }

    fn x(waiters: usize) -> f64 {
        let waiters = f64::from(u32::try_from(waiters).expect("few enough"));
        LEFT + (RIGHT - LEFT) * waiters.log2() / MOST_WAITERS.log2()
    }

    fn y(&self, rate: f64) -> f64 {
        let height = rate.max(1.0).log10() - f64::from(self.bottom);
        BOTTOM - (BOTTOM - TOP) * height / f64::from((self.top - self.bottom).max(1))
    }

    fn axes(&self) -> String {
        let rates: String = (self.bottom..=self.top).map(|power| self.rate_mark(power)).collect();
        let waiters: String = (0..9).map(|power| Self::waiters_mark(1 << power)).collect();
        rates + &waiters + &titles()
    }

    fn rate_mark(&self, power: i32) -> String {
        let rate = 10_f64.powi(power);
        let (y, x, baseline) = (self.y(rate), LEFT - 8.0, self.y(rate) + 5.0);
        format!(
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>\n\
             <text x=\"{x}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>\n",
            grouped(rate)
        )
    }

    fn waiters_mark(waiters: usize) -> String {
        let (x, y) = (Self::x(waiters), BOTTOM + 22.0);
        format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{waiters}</text>\n")
    }

    fn drawn(&self, line: &Line, label: f64, colour: &str) -> String {
        let mut path = String::new();
        let mut dots = String::new();
        for &(waiters, rate) in &line.points {
            let (x, y) = (Self::x(waiters), self.y(rate));
            write!(path, "{x:.1},{y:.1} ").expect("memory");
            writeln!(dots, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")
                .expect("memory");
        }
        format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             {dots}<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{colour}\">{}</text>\n",
            path.trim_end(),
            RIGHT + 12.0,
            label + 5.0,
            line.name
        )
    }
}

/// Beside the end of each line, but not over one another.
fn label_heights(lines: &[Line], scale: &Scale) -> Vec<f64> {
    let end = |line: &Line| line.points.last().map_or(BOTTOM, |(_, rate)| scale.y(*rate));
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|one, other| end(&lines[*one]).total_cmp(&end(&lines[*other])));
    let mut heights = vec![0.0; lines.len()];
    let mut free = 0.0;
    for which in order {
        heights[which] = end(&lines[which]).max(free);
        free = heights[which] + 18.0;
    }
    heights
}

fn titles() -> String {
    let (middle, height) = (f64::midpoint(LEFT, RIGHT), f64::midpoint(TOP, BOTTOM));
    format!(
        "<text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">waiters for one key, in one process\
         </text>\n<text transform=\"translate(22 {height}) rotate(-90)\" text-anchor=\"middle\">\
         sections a second</text>\n",
        BOTTOM + 48.0
    )
}

/// `100 000`
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    groups.join(" ")
}

#[expect(clippy::cast_possible_truncation, reason = "a power of ten")]
fn whole(number: f64) -> i32 {
    number as i32
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 500.0;
const LEFT: f64 = 100.0;
const RIGHT: f64 = 710.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 430.0;
const MOST_WAITERS: f64 = 256.0;

/// Distinguishable by those who see fewer colours too (Okabe and Ito), without the yellow.
const COLOURS: [&str; 7] =
    ["#d55e00", "#e69f00", "#000000", "#0072b2", "#56b4e9", "#009e73", "#cc79a7"];
