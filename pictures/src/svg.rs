//! The parts that all pictures are made of.

use std::fmt::Write;

/// A picture of this size, with a ground of its own: it is read on a light page and on a dark one.
pub(crate) fn sheet(width: f64, height: f64, ground: &str, family: &str, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"{family}\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{ground}\"/>\n{content}</svg>\n"
    )
}

/// A text, whose baseline starts, ends or has its middle there.
pub(crate) fn text(x: f64, y: f64, anchor: &str, colour: &str, content: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\" \
         xml:space=\"preserve\">{}</text>\n",
        escaped(content)
    )
}

pub(crate) fn line(from: (f64, f64), to: (f64, f64), colour: &str, width: f64) -> String {
    let ((x1, y1), (x2, y2)) = (from, to);
    format!(
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\" \
         stroke-width=\"{width}\"/>\n"
    )
}

pub(crate) fn bar(corner: (f64, f64), size: (f64, f64), colour: &str) -> String {
    let ((x, y), (width, height)) = (corner, size);
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         fill=\"{colour}\"/>\n"
    )
}

pub(crate) fn curve(points: &[(f64, f64)], colour: &str) -> String {
    let mut path = String::new();
    for (x, y) in points {
        write!(path, "{x:.1},{y:.1} ").expect("memory");
    }
    format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\n",
        path.trim_end()
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(crate) const INK: &str = "#222222";
pub(crate) const GRID: &str = "#dddddd";
pub(crate) const SANS: &str = "sans-serif";

/// Distinguishable by those who see fewer colours too (Okabe and Ito), without the yellow.
pub(crate) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
