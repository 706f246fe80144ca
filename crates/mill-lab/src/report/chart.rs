//! Pictures as SVG, written by hand: no library of a megabyte, no script, and the same bytes for the same findings.
//!
//! ```text
//! canvas    elements of SVG with numbers that are always finite
//! style     classes, and their colours in a page and in a file
//! ticks     round numbers along a scale
//! axis      values to places, and their labels
//! frame     the plot's rectangle with its axes
//! legend    names beside lines, or above them; widths of text
//! lines, bars, stacks, flame    one kind of drawing each
//! figures   the same as a table
//! ```

mod axis;
mod bars;
mod canvas;
mod figures;
mod flame;
mod frame;
mod legend;
mod lines;
mod stacks;
mod style;
#[cfg(test)]
mod tests;
mod ticks;

pub(super) use figures::{Figures, figures};
pub(super) use style::page_style;

use crate::findings::{Drawing, Picture};

/// The document around a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChartTarget<'a> {
    /// Within a page, whose style sheet colours it. The prefix keeps its ids apart from those of other pictures.
    Page(&'a str),
    /// In a file of its own, with its own background and colours.
    File,
}

impl ChartTarget<'_> {
    /// What ids begin with.
    fn id(&self) -> &str {
        match self {
            Self::Page(id) => id,
            Self::File => "picture",
        }
    }
}

/// Draws one.
pub(super) fn draw(picture: &Picture, place: ChartTarget<'_>) -> String {
    let canvas = match &picture.drawing {
        Drawing::Lines {
            x,
            y,
            series,
            curves,
            shaded,
        } => lines::draw(
            &lines::Lines {
                x,
                y,
                series,
                curves,
                shaded,
            },
            place.id(),
        ),
        Drawing::Bars { scale, zero, bars } => bars::draw(scale, *zero, bars),
        Drawing::Stacks { parts, bars } => stacks::draw(parts, bars),
        Drawing::Flame { folded } => flame::draw(folded),
    };
    canvas.emit(&picture.title, &picture.caption, place)
}
