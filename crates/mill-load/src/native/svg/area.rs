//! The rectangle of a plot, and its lines.

use std::fmt::Write;

/// Edges in the units of SVG, which grow to the right and downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Area {
    pub(super) const fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) const fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(super) const fn middle(&self) -> (f64, f64) {
        (
            f64::midpoint(self.left, self.right),
            f64::midpoint(self.top, self.bottom),
        )
    }

    /// A horizontal line with its value on the left.
    pub(super) fn rule_across(&self, text: &mut String, y: f64, label: &str) {
        let (left, right) = (self.left, self.right);
        let _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            left - 10.0,
            y + 4.0
        );
    }

    /// A vertical line; its value, if there is room for it, below.
    pub(super) fn rule_up(&self, text: &mut String, x: f64, label: Option<&str>) {
        let (top, bottom) = (self.top, self.bottom);
        let _ = write!(
            text,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>"
        );
        if let Some(label) = label {
            let y = bottom + 20.0;
            let _ = write!(
                text,
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"
            );
        }
        text.push('\n');
    }

    /// The line at the bottom of the plot.
    pub(super) fn floor(&self, text: &mut String) {
        let (left, right, y) = (self.left, self.right, self.bottom);
        let _ = writeln!(
            text,
            "<line class=\"axis\" x1=\"{left}\" x2=\"{right}\" y1=\"{y}\" y2=\"{y}\"/>"
        );
    }

    /// The caption of the values below.
    pub(super) fn caption(&self, text: &mut String, caption: &str) {
        let (x, _) = self.middle();
        let y = self.bottom + 44.0;
        let _ = writeln!(
            text,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{caption}</text>"
        );
    }
}
