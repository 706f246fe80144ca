//! The rectangle in which lines are drawn, with its axes.

use super::axis::Axis;
use super::canvas::{Anchor, Area, Canvas};
use super::legend::text_width;

/// Axes and their places.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) area: Area,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Frame {
    /// Between `top` and the labels below, left of `right` pixels that labels of lines need.
    pub(super) fn new(x: Axis, y: Axis, width: f64, top: f64, right: f64) -> Self {
        let labels = y.ticks.iter().map(|tick| text_width(&tick.label));
        let left = labels.fold(0.0, f64::max) + 14.0;
        // Half of the last label along is right of the frame.
        let overhang = x
            .ticks
            .last()
            .map_or(0.0, |tick| text_width(&tick.label) / 2.0 + 4.0);
        let area = Area {
            left,
            top,
            width: (width - left - right.max(overhang)).max(PLOT_WIDTH_MIN),
            height: PLOT_HEIGHT,
        };
        Self { area, x, y }
    }

    /// All of it, with what is below.
    pub(super) fn height(&self) -> f64 {
        self.area.bottom() + 48.0
    }

    /// The place of a point; none if a scale has no place for it.
    pub(super) fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.across(x)?, self.down(y)?))
    }

    pub(super) fn across(&self, x: f64) -> Option<f64> {
        Some(self.area.left + self.x.place(x)? * self.area.width)
    }

    pub(super) fn down(&self, y: f64) -> Option<f64> {
        // What is far outside is drawn just outside, and clipped.
        let share = self.y.place(y)?.clamp(-1.0, 2.0);
        Some(self.area.bottom() - share * self.area.height)
    }

    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let Area { left, .. } = self.area;
        let (right, bottom) = (self.area.right(), self.area.bottom());
        for tick in &self.y.ticks {
            let y = bottom - tick.at * self.area.height;
            canvas.line("grid", (left, y), (right, y));
            canvas.text("small", (left - 8.0, y + 4.0), Anchor::End, &tick.label);
        }
        canvas.line("axis", (left, bottom), (right, bottom));
        // From the right, because the last value matters more than the crowd at the left end of a linear scale.
        let mut free = f64::INFINITY;
        for tick in self.x.ticks.iter().rev() {
            let x = left + tick.at * self.area.width;
            canvas.line("axis", (x, bottom), (x, bottom + 5.0));
            let half = text_width(&tick.label) / 2.0;
            if x + half <= free {
                canvas.text("small", (x, bottom + 19.0), Anchor::Middle, &tick.label);
                free = x - half - 6.0;
            }
        }
        canvas.text("axis-title", (2.0, 15.0), Anchor::Start, &self.y.title);
        canvas.text(
            "axis-title",
            (left + self.area.width / 2.0, bottom + 40.0),
            Anchor::Middle,
            &self.x.title,
        );
    }
}

/// The least width in pixels left for lines beside the labels.
const PLOT_WIDTH_MIN: f64 = 200.0;

/// Pixels.
const PLOT_HEIGHT: f64 = 300.0;
