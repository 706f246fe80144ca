//! Elements of SVG. Numbers are written with one decimal and are always finite; text is escaped here and nowhere else.

use super::ChartTarget;
use super::style::file_style;
use crate::report::escape::markup;
use std::fmt::Write;

/// A picture on its way.
#[derive(Debug)]
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

/// How a text is aligned at x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = writeln!(
            self.body,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>",
            place(from.0),
            place(from.1),
            place(to.0),
            place(to.1)
        );
    }

    pub(super) fn rect(&mut self, class: &str, area: Area) {
        let _ = writeln!(self.body, "<rect class=\"{class}\"{}/>", area.attributes());
    }

    /// A rectangle with a tooltip.
    pub(super) fn titled_rect(&mut self, class: &str, area: Area, title: &str) {
        let _ = writeln!(
            self.body,
            "<rect class=\"{class}\"{}><title>{}</title></rect>",
            area.attributes(),
            markup(title)
        );
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let class = match anchor {
            Anchor::Start => class.to_owned(),
            Anchor::Middle => format!("{class} tm"),
            Anchor::End => format!("{class} te"),
        };
        let _ = writeln!(
            self.body,
            "<text class=\"{}\" x=\"{}\" y=\"{}\">{}</text>",
            class.trim(),
            place(at.0),
            place(at.1),
            markup(text)
        );
    }

    /// A line through points; only the part within the clip of that id is visible.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)], clip: Option<&str>) {
        let mut data = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            let _ = write!(data, "{command}{} {}", place(*x), place(*y));
        }
        let clip = clip
            .map(|id| format!(" clip-path=\"url(#{})\"", markup(id)))
            .unwrap_or_default();
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{data}\"{clip}/>");
    }

    /// The mark of a series' point; shapes differ as well as colours.
    pub(super) fn mark(&mut self, class: &str, shape: usize, at: (f64, f64), title: Option<&str>) {
        let (x, y) = at;
        let inside = title
            .map(|title| format!("<title>{}</title>", markup(title)))
            .unwrap_or_default();
        let through = |points: &[(f64, f64)]| {
            let mut data = String::new();
            for (index, (right, down)) in points.iter().enumerate() {
                let command = if index == 0 { 'M' } else { 'L' };
                let _ = write!(data, "{command}{} {}", place(x + right), place(y + down));
            }
            format!("<path class=\"{class}\" d=\"{data}Z\">{inside}</path>")
        };
        let element = match shape % SHAPES {
            0 => format!(
                "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"3.6\">{inside}</circle>",
                place(x),
                place(y)
            ),
            1 => through(&[(-3.3, -3.3), (3.3, -3.3), (3.3, 3.3), (-3.3, 3.3)]),
            2 => through(&[(0.0, -4.4), (4.2, 3.2), (-4.2, 3.2)]),
            3 => through(&[(0.0, -4.8), (4.8, 0.0), (0.0, 4.8), (-4.8, 0.0)]),
            _ => through(&[(0.0, 4.4), (4.2, -3.2), (-4.2, -3.2)]),
        };
        self.body.push_str(&element);
        self.body.push('\n');
    }

    /// Names a rectangle that `path` can be cut to.
    pub(super) fn clip(&mut self, id: &str, area: Area) {
        let _ = writeln!(
            self.body,
            "<clipPath id=\"{}\"><rect{}/></clipPath>",
            markup(id),
            area.attributes()
        );
    }

    /// The whole element, with title and description for screen readers.
    pub(super) fn emit(&self, title: &str, description: &str, at: ChartTarget<'_>) -> String {
        // In a file nothing else keeps a distance from the edge.
        let margin = if at == ChartTarget::File { MARGIN } else { 0.0 };
        let start = place(-margin);
        let width = place(self.width + 2.0 * margin);
        let height = place(self.height + 2.0 * margin);
        let id = markup(at.id());
        let mut out = String::with_capacity(self.body.len() + 4096);
        let _ = write!(
            out,
            "<svg class=\"chart\" viewBox=\"{start} {start} {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\""
        );
        if description.is_empty() {
            let _ = write!(out, " aria-labelledby=\"{id}-title\"");
        } else {
            let _ = write!(out, " aria-labelledby=\"{id}-title {id}-desc\"");
        }
        if at == ChartTarget::File {
            out.push_str(" xmlns=\"http://www.w3.org/2000/svg\"");
        }
        let _ = writeln!(out, ">\n<title id=\"{id}-title\">{}</title>", markup(title));
        if !description.is_empty() {
            let _ = writeln!(out, "<desc id=\"{id}-desc\">{}</desc>", markup(description));
        }
        if at == ChartTarget::File {
            let _ = write!(
                out,
                "<style>{}</style>\n<rect class=\"paper\" x=\"{start}\" y=\"{start}\" width=\"{width}\" height=\"{height}\"/>\n",
                file_style()
            );
        }
        out.push_str(&self.body);
        out.push_str("</svg>\n");
        out
    }
}

/// Pixels around a picture in a file.
const MARGIN: f64 = 14.0;

/// Different shapes of marks.
const SHAPES: usize = 5;

/// A rectangle, y downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(self) -> f64 {
        self.top + self.height
    }

    fn attributes(self) -> String {
        format!(
            " x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            place(self.left),
            place(self.top),
            place(self.width.max(0.0)),
            place(self.height.max(0.0))
        )
    }
}

/// A coordinate: a tenth of a pixel is finer than screens, and anything infinite was left out by axes before.
fn place(value: f64) -> String {
    debug_assert!(value.is_finite(), "a coordinate is {value}");
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => String::from("0"),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
