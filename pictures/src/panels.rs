//! The panels of the dashboard, drawn from what its queries return.
//!
//! The data are lines: `panel X Y WIDTH HEIGHT KIND UNIT TITLE` as on the dashboard, `series LEGEND` for each series of
//! its queries, and `SECOND VALUE` for each point.

use crate::svg::{self, COLOURS, GRID, INK, SANS, curve, line, text};

pub(crate) fn draw(data: &str) -> String {
    let panels: Vec<_> = data.split("panel ").skip(1).map(Panel::of).collect();
    let end = panels.iter().map(|panel| panel.y + panel.height).fold(0.0, f64::max);
    let content: String = panels.iter().map(Panel::drawn).collect();
    svg::sheet(24.0 * X, end * Y, "white", SANS, &content)
}

/// Its place is in the units of the dashboard.
struct Panel<'a> {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    is_number: bool,
    unit: &'a str,
    title: &'a str,
    series: Vec<Series<'a>>,
}

struct Series<'a> {
    legend: &'a str,
    points: Vec<(f64, f64)>,
}

impl<'a> Panel<'a> {
    fn of(text: &'a str) -> Self {
        let (heading, rest) = text.split_once('\n').expect("a line");
        let words: Vec<_> = heading.splitn(7, ' ').collect();
        let &[x, y, width, height, kind, unit, title] = &words[..] else {
            panic!("`{heading}` is no panel")
        };
        let [x, y, width, height] = [x, y, width, height].map(number);
        let series = rest.split("series ").skip(1).map(Series::of).collect();
        Self { x, y, width, height, is_number: kind == "stat", unit, title, series }
    }

    fn drawn(&self) -> String {
        let (left, top) = (self.x * X, self.y * Y);
        let (width, height) = (self.width * X - 8.0, self.height * Y - 8.0);
        let frame = format!(
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"3\" \
             fill=\"none\" stroke=\"{GRID}\"/>\n",
            left + 4.0,
            top + 4.0
        );
        let title = text(left + 14.0, top + 22.0, "start", INK, self.title);
        frame + &title + &if self.is_number { self.numbers() } else { self.plot() }
    }

    fn numbers(&self) -> String {
        let (left, mut y, mut drawn) = (self.x * X + 14.0, self.y * Y + 48.0, String::new());
        for series in &self.series {
            let value = series.points.last().map_or(0.0, |(_, value)| *value);
            let value = format!("{} {}", self.shown(value), series.legend);
            let large = text(left, y, "start", COLOURS[0], value.trim_end());
            drawn += &large.replacen("<text ", "<text font-size=\"16\" ", 1);
            y += 21.0;
        }
        drawn
    }

    fn plot(&self) -> String {
        let scale = Scale::of(self);
        let mut drawn = scale.axes(self);
        let mut x = self.x * X + 14.0;
        for (series, colour) in self.series.iter().zip(COLOURS.into_iter().cycle()) {
            let points: Vec<_> = series.points.iter().map(|point| scale.place(*point)).collect();
            drawn += &curve(&points, colour);
            let legend = text(x, (self.y + self.height) * Y - 12.0, "start", colour, series.legend);
            drawn += &legend.replacen("<text ", "<text font-size=\"11\" ", 1);
            x += 18.0 + 6.0 * f64::from(u32::try_from(series.legend.len()).expect("a short text"));
        }
        drawn
    }

    fn shown(&self, value: f64) -> String {
        match self.unit {
            "s" if value < 0.9995 => format!("{:.1} ms", value * 1000.0),
            "s" => format!("{value:.1} s"),
            "ops" => format!("{value:.1}/s"),
            _ if self.is_number || value.fract() == 0.0 => format!("{value:.0}"),
            _ => format!("{value:.1}"),
        }
    }
}

impl<'a> Series<'a> {
    fn of(text: &'a str) -> Self {
        let (legend, points) = text.split_once('\n').expect("a line");
        let points = points.lines().filter_map(|line| line.split_once(' '));
        Self { legend, points: points.map(|(at, value)| (number(at), number(value))).collect() }
    }
}

/// From seconds and values to places.
struct Scale {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    first: f64,
    last: f64,
    most: f64,
}

impl Scale {
    fn of(panel: &Panel<'_>) -> Self {
        let points = || panel.series.iter().flat_map(|series| &series.points);
        let most = points().map(|(_, value)| *value).fold(0.0, f64::max);
        Self {
            left: panel.x * X + 64.0,
            right: (panel.x + panel.width) * X - 16.0,
            top: panel.y * Y + 36.0,
            bottom: (panel.y + panel.height) * Y - 46.0,
            first: points().map(|(at, _)| *at).fold(f64::MAX, f64::min),
            last: points().map(|(at, _)| *at).fold(0.0, f64::max),
            most: if most > 0.0 { most } else { 1.0 },
        }
    }

    fn place(&self, (at, value): (f64, f64)) -> (f64, f64) {
        let span = (self.last - self.first).max(1.0);
        let x = self.left + (self.right - self.left) * (at - self.first) / span;
        (x, self.bottom - (self.bottom - self.top) * value / self.most)
    }

    fn axes(&self, panel: &Panel<'_>) -> String {
        let (left, right, bottom) = (self.left, self.right, self.bottom);
        let mut drawn = String::new();
        for value in [0.0, self.most / 2.0, self.most] {
            let y = self.place((self.first, value)).1;
            drawn += &line((left, y), (right, y), GRID, 1.0);
            drawn += &small(left - 6.0, y + 4.0, "end", &panel.shown(value));
        }
        let span = format!("{:.0} s", (self.last - self.first).max(0.0));
        drawn
            + &small(left, bottom + 16.0, "middle", "0 s")
            + &small(right, bottom + 16.0, "end", &span)
    }
}

fn small(x: f64, y: f64, anchor: &str, content: &str) -> String {
    text(x, y, anchor, INK, content).replacen("<text ", "<text font-size=\"11\" ", 1)
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

/// How many pixels a unit of the dashboard has.
const X: f64 = 50.0;
const Y: f64 = 22.0;
