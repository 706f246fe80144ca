//! Points with intervals, joined; smooth curves; shaded spans.

use super::axis::{Axis, short};
use super::canvas::{Anchor, Area, Canvas};
use super::frame::Frame;
use super::legend::{Legend, Sample, fitted, spread, text_width};
use super::style::SERIES_COUNT;
use crate::findings::{Dot, Scale, Series};

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines<'a> {
    pub(super) x: &'a Scale,
    pub(super) y: &'a Scale,
    pub(super) series: &'a [Series],
    pub(super) curves: &'a [Series],
    pub(super) shaded: &'a [(f64, f64)],
}

/// `id` begins the names of what a picture refers to within itself.
pub(super) fn draw(lines: &Lines<'_>, id: &str) -> Canvas {
    let x = Axis::along(lines.x, &across(lines));
    let y = Axis::upward(lines.y, &upward(lines));
    let direct = direct_labels(lines, &x, &y);
    let right = direct
        .iter()
        .map(|name| text_width(name) + LABEL_GAP + 12.0)
        .fold(16.0, f64::max);
    let legend = Legend::new(entries(lines, direct.is_empty()), WIDTH - 8.0);
    let top = 24.0 + legend.height() + 12.0;
    let frame = Frame::new(x, y, WIDTH, top, right);
    let mut canvas = Canvas::new(WIDTH, frame.height());
    let clip = format!("{id}-clip");
    canvas.clip(&clip, frame.area);
    shade(&mut canvas, &frame, lines.shaded);
    frame.draw(&mut canvas);
    legend.draw(&mut canvas, 24.0);
    for curve in lines.curves {
        let class = curve_class(curve, lines.series);
        canvas.path(&class, &places(&frame, &curve.points), Some(&clip));
    }
    let mut drawn = 0;
    for (index, series) in lines.series.iter().enumerate() {
        drawn += draw_series(&mut canvas, &frame, lines, series, index);
    }
    if drawn == 0 {
        let middle = (
            frame.area.left + frame.area.width / 2.0,
            frame.area.top + frame.area.height / 2.0,
        );
        canvas.text("small", middle, Anchor::Middle, "no figures");
    }
    label_ends(&mut canvas, &frame, lines, &direct);
    canvas
}

/// Pixels.
const WIDTH: f64 = 760.0;

/// Pixels between the end of a line and its name; lines lead there if the name had to move.
const LABEL_GAP: f64 = 22.0;

/// Pixels from one name to the next.
const LABEL_DISTANCE: f64 = 17.0;

/// Names wider than that go above the plot, which needs the room itself.
const LABEL_WIDTH_MAX: f64 = 190.0;

/// Lines with more points have no marks: they would cover the line.
const MARKS_MAX: usize = 40;

fn across(lines: &Lines<'_>) -> Vec<f64> {
    let points = lines.series.iter().flat_map(|series| &series.points);
    let values: Vec<f64> = points
        .filter(|dot| dot.y.is_finite())
        .map(|dot| dot.x)
        .collect();
    if values.is_empty() {
        let curves = lines.curves.iter().flat_map(|curve| &curve.points);
        return curves.map(|dot| dot.x).collect();
    }
    values
}

/// The extent to show: all points with their intervals. Curves may leave the frame, or an ideal line would flatten
/// everything else.
fn upward(lines: &Lines<'_>) -> Vec<f64> {
    let points = lines.series.iter().flat_map(|series| &series.points);
    let values: Vec<f64> = points
        .flat_map(|dot| [Some(dot.y), dot.low, dot.high])
        .flatten()
        .collect();
    if values.is_empty() {
        let curves = lines.curves.iter().flat_map(|curve| &curve.points);
        return curves.map(|dot| dot.y).collect();
    }
    values
}

/// Names beside the ends, if there are several series that all end at the right edge; else none.
fn direct_labels(lines: &Lines<'_>, x: &Axis, y: &Axis) -> Vec<String> {
    let ends_right = |series: &Series| {
        let drawable = |dot: &&Dot| x.place(dot.x).is_some() && y.place(dot.y).is_some();
        let last = series.points.iter().rev().find(drawable);
        let place = last.and_then(|dot| x.place(dot.x));
        place.is_some_and(|place| place > 0.97)
    };
    let narrow = |series: &Series| text_width(&series.name) <= LABEL_WIDTH_MAX;
    let count = lines.series.len();
    let fits = (2..=MARKED_COLOURS).contains(&count)
        && lines
            .series
            .iter()
            .all(|series| ends_right(series) && narrow(series));
    if !fits {
        return Vec::new();
    }
    lines
        .series
        .iter()
        .map(|series| fitted(&series.name, LABEL_WIDTH_MAX))
        .collect()
}

/// With more series than colours, the legend distinguishes them by their marks.
const MARKED_COLOURS: usize = SERIES_COUNT;

fn entries(lines: &Lines<'_>, with_series: bool) -> Vec<(Sample, String)> {
    let mut out = Vec::new();
    let named = |series: &&Series| !series.name.is_empty();
    for (index, series) in lines.series.iter().enumerate() {
        if with_series && named(&series) {
            let mark = has_marks(series).then(|| (mark_class(index), index));
            let class = series_class(index);
            out.push((Sample::Line { class, mark }, series.name.clone()));
        }
    }
    for curve in lines.curves.iter().filter(named) {
        let class = curve_class(curve, lines.series);
        out.push((Sample::Line { class, mark: None }, curve.name.clone()));
    }
    out
}

fn series_class(index: usize) -> String {
    let dashed = if index >= SERIES_COUNT { " dashed" } else { "" };
    format!("series s{}{dashed}", index % SERIES_COUNT)
}

fn mark_class(index: usize) -> String {
    format!("m{}", index % SERIES_COUNT)
}

/// The ideal is dashed; a fit is thin in the colour of the series that its name begins with.
fn curve_class(curve: &Series, series: &[Series]) -> String {
    let belongs = |series: &&Series| !series.name.is_empty() && curve.name.contains(&series.name);
    let longest = series
        .iter()
        .enumerate()
        .filter(|(_, series)| belongs(series))
        .max_by_key(|(_, series)| series.name.len());
    if curve.name.to_lowercase().contains("ideal") {
        return match longest {
            Some((index, _)) => format!("series s{} dashed", index % SERIES_COUNT),
            None => String::from("ideal"),
        };
    }
    let index = match longest {
        Some((index, _)) => index,
        None if series.len() == 1 => 0,
        None => return String::from("ideal"),
    };
    format!("series thin s{}", index % SERIES_COUNT)
}

fn has_marks(series: &Series) -> bool {
    series.points.len() <= MARKS_MAX
}

fn places(frame: &Frame, points: &[Dot]) -> Vec<(f64, f64)> {
    let all: Vec<(f64, f64)> = points
        .iter()
        .filter_map(|dot| frame.place(dot.x, dot.y))
        .collect();
    thinned(all)
}

/// With more points than pixels, only the lowest and highest of each half pixel remain, in their order.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let bucket = points.len().div_ceil(POINTS_MAX / 2);
    let mut out = Vec::with_capacity(POINTS_MAX);
    for part in points.chunks(bucket) {
        let height = |at: &usize| part[*at].1;
        let ends = |at: Option<usize>| at.unwrap_or(0);
        let low = ends((0..part.len()).min_by(|one, other| height(one).total_cmp(&height(other))));
        let high = ends((0..part.len()).max_by(|one, other| height(one).total_cmp(&height(other))));
        out.push(part[low.min(high)]);
        if low != high {
            out.push(part[low.max(high)]);
        }
    }
    out
}

/// Points of a line that are written: two for each pixel across.
const POINTS_MAX: usize = 1500;

/// How many points it had a place for.
fn draw_series(
    canvas: &mut Canvas,
    frame: &Frame,
    lines: &Lines<'_>,
    series: &Series,
    index: usize,
) -> usize {
    let line = places(frame, &series.points);
    if line.len() > 1 {
        canvas.path(&series_class(index), &line, None);
    }
    if !has_marks(series) {
        return line.len();
    }
    let whisker = format!("whisker s{}", index % SERIES_COUNT);
    for dot in &series.points {
        let Some((x, y)) = frame.place(dot.x, dot.y) else {
            continue;
        };
        let end = |value: Option<f64>| {
            let place = value.and_then(|value| frame.down(value)).unwrap_or(y);
            place.clamp(frame.area.top, frame.area.bottom())
        };
        let (low, high) = (end(dot.low), end(dot.high));
        if (low - high).abs() > 1.0 {
            canvas.path(&whisker, &[(x, low), (x, high)], None);
            canvas.path(&whisker, &[(x - 4.0, low), (x + 4.0, low)], None);
            canvas.path(&whisker, &[(x - 4.0, high), (x + 4.0, high)], None);
        }
        let title = format!(
            "{}: {} at {}",
            series.name,
            short_figure(dot.y, lines.y),
            short(dot.x, lines.x.unit)
        );
        canvas.mark(&mark_class(index), index, (x, y), Some(&title));
    }
    line.len()
}

fn short_figure(value: f64, scale: &Scale) -> String {
    crate::report::number::figure(value, scale.unit)
}

fn shade(canvas: &mut Canvas, frame: &Frame, spans: &[(f64, f64)]) {
    for (from, to) in spans {
        let (Some(from), Some(to)) = (frame.across(*from), frame.across(*to)) else {
            continue;
        };
        let inside = |x: f64| x.clamp(frame.area.left, frame.area.right());
        let (left, right) = (inside(from.min(to)), inside(from.max(to)));
        canvas.rect(
            "shade",
            Area {
                left,
                width: right - left,
                ..frame.area
            },
        );
    }
}

fn label_ends(canvas: &mut Canvas, frame: &Frame, lines: &Lines<'_>, names: &[String]) {
    let ends: Vec<(f64, f64)> = lines
        .series
        .iter()
        .filter_map(|series| {
            let points = series.points.iter().rev();
            points.filter_map(|dot| frame.place(dot.x, dot.y)).next()
        })
        .collect();
    if names.is_empty() || ends.len() != names.len() {
        return;
    }
    let wanted: Vec<f64> = ends.iter().map(|(_, y)| *y).collect();
    let area = frame.area;
    let Some(places) = spread(&wanted, LABEL_DISTANCE, area.top, area.bottom()) else {
        return;
    };
    for (index, (name, y)) in names.iter().zip(places).enumerate() {
        let (end_x, end_y) = ends[index];
        let left = area.right() + LABEL_GAP;
        if (y - end_y).abs() > 3.0 {
            canvas.path(
                "leader",
                &[(end_x + 6.0, end_y), (left - 12.0, y), (left - 9.0, y)],
                None,
            );
        }
        if lines.series.get(index).is_some_and(has_marks) {
            canvas.mark(&mark_class(index), index, (left - 3.0, y), None);
        } else {
            let class = series_class(index);
            canvas.line(&class, (left - 8.0, y), (left + 2.0, y));
        }
        canvas.text("", (left + 6.0, y + 4.5), Anchor::Start, name);
    }
}
