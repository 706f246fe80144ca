//! "Gb/s" that are MiB/s × 8 / 1000: 4.63 % less than Gb/s. A table of rates and one of throughput of the same object give it away: their
//! quotient is the size of an answer, which is the object and a head, and can't be less than the object.

use super::matrix::{cells, object_bytes, pairs};
use super::tables::{Cell, Table};
use super::warning;
use crate::findings::Warning;
use crate::output::quantity::Quantity;
use crate::recipe::{Published, Recipe};

pub(super) fn of_published(recipe: &Recipe) -> Vec<Warning> {
    let of_metric = |names: &'static [&'static str]| {
        recipe
            .published
            .iter()
            .filter(move |table| names.contains(&table.metric.as_str()))
    };
    let mut warnings = Vec::new();
    for throughput in of_metric(&["gbit_per_s", "gbit_per_s_from_mib"]) {
        let found =
            of_metric(&["requests_per_s"]).find_map(|rates| of_pair(recipe, rates, throughput));
        warnings.extend(found);
    }
    warnings
}

/// Of the tables of a text: a table of rates and one of the same rows and columns whose quotients are all the same is one of
/// their throughput, and the quotient the size of an answer. Sizes are those that the text names. Where the quotient fits
/// none of them as Gb/s, and one of them in all cells if MiB/s were multiplied by 8 / 1000, the unit has slipped.
pub(super) fn of_text(text: &str, tables: &[Table]) -> Vec<Warning> {
    let sizes = sizes_of(text);
    let mut warnings = Vec::new();
    for throughput in tables {
        let found = tables
            .iter()
            .find_map(|rates| of_tables(rates, throughput, &sizes));
        warnings.extend(found);
    }
    warnings
}

fn of_tables(rates: &Table, throughput: &Table, objects: &[f64]) -> Option<Warning> {
    let names = |table: &Table| {
        table
            .rows
            .iter()
            .map(|row| row.name.clone())
            .collect::<Vec<_>>()
    };
    if rates.columns != throughput.columns || names(rates) != names(throughput) {
        return None;
    }
    let plain = rates.plain_columns();
    if plain.is_empty() || plain != throughput.plain_columns() {
        return None;
    }
    let sizes: Option<Vec<Quantity>> = plain
        .iter()
        .flat_map(|column| throughput.column(*column).zip(rates.column(*column)))
        .filter_map(|(gigabits, rate)| Some((gigabits?, rate?)))
        .map(|(gigabits, rate): (Cell, Cell)| gigabits.figure.times(1e9 / 8.0).over(rate.figure))
        .collect();
    let sizes = sizes.filter(|sizes| sizes.len() >= CELLS_MIN)?;
    let objects = || objects.iter().copied().filter(|size| *size >= OBJECT_MIN);
    if objects().any(|object| fits(&sizes, object, 1.0)) {
        return None;
    }
    let object = objects().find(|object| fits(&sizes, *object, MIB_RULE))?;
    let text = slip(
        &throughput.place,
        &rates.place,
        &sizes,
        &format!("an object of {object}"),
    )?;
    Some(warning(
        "unit-slip",
        text,
        "Multiply by 1.048576 for Gb/s; wrk's MB are of 1,048,576 bytes.",
    ))
}

/// Whether answers of these sizes may be an object and a head, if they are scaled.
fn fits(sizes: &[Quantity], object: f64, scale: f64) -> bool {
    sizes.iter().all(|size| {
        let size = size.times(scale);
        let (least, most) = (size.value - size.half_width, size.value + size.half_width);
        most >= object && least <= object + HEAD_MAX
    })
}

fn slip(throughput: &str, rates: &str, sizes: &[Quantity], object: &str) -> Option<String> {
    let scaled = || sizes.iter().map(|size| size.value * MIB_RULE);
    let (least, most) = (scaled().reduce(f64::min)?, scaled().reduce(f64::max)?);
    Some(format!(
        "{throughput}: its Gb/s are MiB/s × 8 / 1000, {SLIP_PERCENT} % less than Gb/s. Divided by the rates of {rates} they give {least:.0} to {most:.0} bytes an answer in all {} cells, which is {object} bytes and its head; taken for Gb/s they would give less than the object.",
        sizes.len()
    ))
}

/// Sizes that a text names, `100KB`, `100kb.bin`, `1 MiB`, in bytes; K is read as 1000 and as 1024, for both are meant.
fn sizes_of(text: &str) -> Vec<f64> {
    let mut sizes = Vec::new();
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()) {
        let Some(end) = word.find(|letter: char| !letter.is_ascii_digit()) else {
            continue;
        };
        let (digits, unit) = word.split_at(end);
        let power = match unit.to_ascii_lowercase().as_str() {
            "k" | "kb" | "kib" => 1,
            "m" | "mb" | "mib" => 2,
            _ => continue,
        };
        let Ok(number) = digits.parse::<u32>() else {
            continue;
        };
        for kilo in [1000.0_f64, 1024.0] {
            let size = f64::from(number) * kilo.powi(power);
            if !sizes.contains(&size) {
                sizes.push(size);
            }
        }
    }
    sizes
}

fn of_pair(recipe: &Recipe, rates: &Published, throughput: &Published) -> Option<Warning> {
    let same_layout = rates.lines == throughput.lines && rates.columns == throughput.columns;
    let object = object_bytes(recipe, rates)?;
    if !same_layout || object < OBJECT_MIN || object_bytes(recipe, throughput)? != object {
        return None;
    }
    let both = pairs(&cells(rates), &cells(throughput));
    let sizes = both.iter().map(|(rate, gigabits)| {
        let bytes_per_s = gigabits.figure.times(1e9 / 8.0);
        bytes_per_s.over(rate.figure)
    });
    let sizes: Option<Vec<Quantity>> = sizes.collect();
    let sizes = sizes.filter(|sizes| sizes.len() >= CELLS_MIN)?;
    let tagged = throughput.metric == "gbit_per_s_from_mib";
    match (fits(&sizes, object, 1.0), fits(&sizes, object, MIB_RULE)) {
        (false, true) => {
            let object = format!("the object of {object}");
            let text = slip(&throughput.place, &rates.place, &sizes, &object)?;
            let advice = if tagged {
                "Compare them with gbit_per_s_from_mib only; true Gb/s stand beside it."
            } else {
                "Multiply by 1.048576 for Gb/s, or give the metric as gbit_per_s_from_mib."
            };
            Some(warning("unit-slip", text, advice))
        }
        (true, false) if tagged => {
            let text = format!(
                "{} is said to be MiB/s × 8 / 1000, but with the rates of {} it fits Gb/s.",
                throughput.place, rates.place
            );
            Some(warning("unit-slip", text, "Give the metric as gbit_per_s."))
        }
        _ => None,
    }
}

/// Bytes of a MiB over those of a MB.
const MIB_RULE: f64 = 1.048_576;

/// 1 - 1 / 1.048576, in percent.
const SLIP_PERCENT: f64 = 4.63;

/// Bytes; the two rules differ by 4.86 %, which has to be more than a head and the framing of a card's counters.
const OBJECT_MIN: f64 = 50_000.0;

/// Bytes of a head at most: servers of static files send some hundred.
const HEAD_MAX: f64 = 2048.0;

/// Pairs of cells from which a rule is believed.
const CELLS_MIN: usize = 3;
