//! Folded stacks as a flame graph: the width of a frame is its share of the samples, callers are below what they
//! called.
//!
//! No script: a pointer that rests on a frame shows its name and share, and what is too narrow to see is not written.

mod tree;

use super::canvas::{Anchor, Area, Canvas};
use super::legend::{Legend, Sample, fitted};
use super::style::SHADES;
use crate::report::number::{grouped, significant};
pub(super) use tree::{Frame, Tree};

pub(super) fn draw(folded: &[(String, u64)]) -> Canvas {
    let tree = Tree::of(folded, WIDTH_SHARE_MIN);
    let kept = affordable(&tree);
    let depth = kept.iter().map(|frame| frame.depth).max().unwrap_or(0);
    let legend = Legend::new(
        vec![
            (Sample::Fill(String::from("u0")), String::from("user code")),
            (Sample::Fill(String::from("k0")), String::from("kernel")),
        ],
        WIDTH,
    );
    let top = legend.height() + 10.0;
    let rows = f64::from(u32::try_from(depth + 1).unwrap_or(1));
    let mut canvas = Canvas::new(WIDTH, top + rows * ROW + 4.0);
    legend.draw(&mut canvas, 2.0);
    if tree.samples == 0 {
        let at = (WIDTH / 2.0, top + ROW - 4.0);
        canvas.text("small", at, Anchor::Middle, "no samples");
        return canvas;
    }
    for frame in kept {
        let from_bottom = f64::from(u32::try_from(frame.depth + 1).unwrap_or(1));
        let area = Area {
            left: share(frame.begin, tree.samples) * WIDTH,
            top: top + (rows - from_bottom) * ROW,
            width: share(frame.samples, tree.samples) * WIDTH,
            height: ROW - 1.0,
        };
        draw_frame(&mut canvas, &tree, frame, area);
    }
    canvas
}

fn draw_frame(canvas: &mut Canvas, tree: &Tree, frame: &Frame, area: Area) {
    let title = format!(
        "{}: {} %, {} samples",
        fitted(&frame.name, TITLE_WIDTH_MAX),
        significant(share(frame.samples, tree.samples) * 100.0, 3),
        grouped(&frame.samples.to_string())
    );
    let kind = if frame.kernel { 'k' } else { 'u' };
    let class = format!("{kind}{}", shade(&frame.name));
    // A hair between neighbours of the same shade.
    let drawn = Area {
        width: (area.width - 0.5).max(0.3),
        ..area
    };
    canvas.titled_rect(&class, drawn, &title);
    if area.width > NAME_WIDTH_MIN {
        // `fitted` counts letters of 13 px; these are of 11.
        let name = fitted(&frame.name, (area.width - 5.0) * 13.0 / 11.0);
        let at = (area.left + 3.0, area.top + ROW - 5.0);
        canvas.text("onframe", at, Anchor::Start, &name);
    }
}

/// The widest frames that together stay below the size; a caller is never narrower than what it called, so none hangs in the air.
fn affordable(tree: &Tree) -> Vec<&Frame> {
    let mut frames: Vec<&Frame> = tree.frames.iter().collect();
    frames.sort_by(|one, other| {
        (other.samples, one.depth, one.begin).cmp(&(one.samples, other.depth, other.begin))
    });
    let mut bytes = 0;
    frames
        .into_iter()
        .take_while(|frame| {
            // The name is in the title and perhaps in the frame, escaped.
            bytes += ELEMENT_BYTES + 2 * frame.name.len().min(140);
            bytes <= BYTES_MAX && frame.depth < DEPTH_MAX
        })
        .collect()
}

/// Pixels.
const WIDTH: f64 = 1000.0;
const ROW: f64 = 17.0;

/// Frames narrower than half a pixel are invisible.
const WIDTH_SHARE_MIN: f64 = 0.0005;

/// Pixels of a frame that has room for a few letters.
const NAME_WIDTH_MIN: f64 = 24.0;

/// Pixels of a name in a title: C++ has names of kilobytes.
const TITLE_WIDTH_MAX: f64 = 900.0;

/// Rows; recursion can be deeper than any screen.
const DEPTH_MAX: usize = 120;

/// Bytes of a picture: five of them and everything else fit into a page.
const BYTES_MAX: usize = 240_000;

/// Bytes of a frame's elements without its name.
const ELEMENT_BYTES: usize = 170;

/// One of the shades, by the name: the same function looks the same in all pictures.
fn shade(name: &str) -> usize {
    name.bytes().fold(0_usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(byte))
    }) % SHADES
}

#[expect(
    clippy::cast_precision_loss,
    reason = "samples are far fewer than 2^53, and a pixel is coarse"
)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
