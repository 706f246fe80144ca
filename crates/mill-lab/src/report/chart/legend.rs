//! Names of lines: beside their ends where they fit, in rows above the plot where they don't. Neither covers the plot.

use super::canvas::{Anchor, Canvas};

/// Pixels of a text at 13 px. No typeface is known here: these are the widths of DejaVu Sans, the widest of the usual ones.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().map(character_width).sum()
}

fn character_width(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' => 3.7,
        ' ' | '.' | ',' | ':' | ';' | '|' | '!' | '/' | 'I' => 4.4,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' => 5.3,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 12.7,
        'A'..='Z' => 9.4,
        other if other.is_ascii() || ('\u{a0}'..'\u{500}').contains(&other) => 8.2,
        // East Asian characters are as wide as high.
        _ => 13.0,
    }
}

/// Shortened to so many pixels, with an ellipsis.
pub(super) fn fitted(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut used = text_width("…");
    let mut out = String::new();
    for character in text.chars() {
        used += character_width(character);
        if used > width {
            break;
        }
        out.push(character);
    }
    out.trim_end().to_owned() + "…"
}

/// Shortened to so many pixels in the middle: names of bars begin alike and differ at their ends.
pub(super) fn squeezed(text: &str, width: f64) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let room = width - text_width("…");
    let taken = |characters: &mut dyn Iterator<Item = char>, room: f64| {
        let mut used = 0.0;
        let fits = |character: &char| {
            used += character_width(*character);
            used <= room
        };
        characters.take_while(fits).collect::<Vec<char>>()
    };
    let end: String = {
        let backwards = taken(&mut text.chars().rev(), room / 2.0);
        backwards.into_iter().rev().collect()
    };
    let left = room - text_width(&end);
    let start: String = taken(&mut text.chars(), left).into_iter().collect();
    format!("{}…{}", start.trim_end(), end.trim_start())
}

/// The mark before a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// A line of this class with marks of a class and a shape.
    Line {
        class: String,
        mark: Option<(String, usize)>,
    },
    /// A filled square of this class.
    Fill(String),
}

/// Names with samples, in rows.
#[derive(Debug)]
pub(super) struct Legend {
    /// Left end, row, sample, name.
    items: Vec<(f64, usize, Sample, String)>,
    rows: usize,
}

impl Legend {
    pub(super) fn new(entries: Vec<(Sample, String)>, width: f64) -> Self {
        let mut items = Vec::new();
        let (mut left, mut row) = (0.0, 0);
        for (sample, name) in entries {
            let name = fitted(&name, width - SAMPLE - 8.0);
            let needed = SAMPLE + text_width(&name);
            if left > 0.0 && left + needed > width {
                left = 0.0;
                row += 1;
            }
            items.push((left, row, sample, name));
            left += needed + GAP;
        }
        let rows = if items.is_empty() { 0 } else { row + 1 };
        Self { items, rows }
    }

    pub(super) fn height(&self) -> f64 {
        f64::from(u32::try_from(self.rows).unwrap_or(0)) * ROW
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) {
        for (left, row, sample, name) in &self.items {
            let left = left + 2.0;
            let middle = top + (f64::from(u32::try_from(*row).unwrap_or(0)) + 0.5) * ROW;
            match sample {
                Sample::Line { class, mark } => {
                    canvas.line(class, (left, middle), (left + 24.0, middle));
                    if let Some((class, shape)) = mark {
                        canvas.mark(class, *shape, (left + 12.0, middle), None);
                    }
                }
                Sample::Fill(class) => canvas.rect(
                    class,
                    super::canvas::Area {
                        left: left + 6.0,
                        top: middle - 6.5,
                        width: 13.0,
                        height: 13.0,
                    },
                ),
            }
            canvas.text("", (left + SAMPLE, middle + 4.5), Anchor::Start, name);
        }
    }
}

/// Pixels: of a sample with its distance to the name, between entries, of a row.
const SAMPLE: f64 = 31.0;
const GAP: f64 = 18.0;
const ROW: f64 = 21.0;

/// Moves labels apart so that none covers another and all stay between `top` and `bottom`; keeps their order. None if they don't fit.
pub(super) fn spread(wanted: &[f64], distance: f64, top: f64, bottom: f64) -> Option<Vec<f64>> {
    let count = f64::from(u32::try_from(wanted.len()).ok()?);
    if (count - 1.0) * distance > bottom - top {
        return None;
    }
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|one, other| wanted[*one].total_cmp(&wanted[*other]));
    let mut places = wanted.to_vec();
    let mut free = top;
    for &index in &order {
        places[index] = places[index].max(free);
        free = places[index] + distance;
    }
    let mut free = bottom;
    for &index in order.iter().rev() {
        places[index] = places[index].min(free);
        free = places[index] - distance;
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_apart_and_stay_inside() {
        let places = spread(&[10.0, 11.0, 12.0, 99.0], 16.0, 0.0, 100.0).expect("room");
        assert_eq!(places, [10.0, 26.0, 42.0, 99.0]);
        let places = spread(&[98.0, 99.0, 100.0], 16.0, 0.0, 100.0).expect("room");
        assert_eq!(places, [68.0, 84.0, 100.0]);
        assert_eq!(spread(&[0.0; 10], 16.0, 0.0, 100.0), None);
        assert_eq!(spread(&[], 16.0, 0.0, 100.0), Some(Vec::new()));
    }

    #[test]
    fn rows_break_before_the_edge() {
        let entry = |name: &str| (Sample::Fill(String::from("p0")), name.repeat(10));
        let legend = Legend::new(vec![entry("usr"), entry("sys"), entry("soft")], 600.0);
        let rows: Vec<usize> = legend.items.iter().map(|(_, row, ..)| *row).collect();
        assert_eq!(rows, [0, 0, 1]);
        assert_eq!(Legend::new(Vec::new(), 500.0).height(), 0.0);
    }

    #[test]
    fn long_names_end_in_an_ellipsis() {
        assert_eq!(fitted("short", 100.0), "short");
        let cut = fitted(&"long ".repeat(100), 100.0);
        assert!(cut.ends_with('…') && text_width(&cut) <= 100.0, "{cut}");
    }

    #[test]
    fn a_name_that_is_squeezed_keeps_both_ends() {
        let name = "test = thr100M, Own stack performance: server";
        let cut = squeezed(name, 160.0);
        assert!(text_width(&cut) <= 160.0, "{cut}");
        assert!(
            cut.starts_with("test = ") && cut.ends_with(": server"),
            "{cut}"
        );
        assert_eq!(squeezed(name, 1000.0), name);
        assert_eq!(squeezed(name, 0.0), "…");
    }
}
