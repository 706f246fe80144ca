//! Changes as bars with their intervals.

use super::super::measured::{Filter, Measured};
use super::{Drawn, scale};
use crate::findings::{Bar, Compared, Drawing, whiskers};
use crate::metric::{Unit, describe};
use crate::recipe::Chart;

pub(super) fn bars(
    measured: &Measured<'_>,
    comparisons: &[Compared],
    chart: &Chart,
    at: &Filter,
) -> Drawn {
    // A comparison belongs to the picture if its words name each value that the picture asks for.
    let asked: Vec<String> = at
        .iter()
        .map(|part| measured.told(&Filter::from([(part.0.clone(), part.1.clone())])))
        .collect();
    let moving = measured.moving_axes();
    let asked: Vec<String> = asked
        .into_iter()
        .zip(at.keys())
        .filter(|(_, axis)| moving.iter().any(|moving| moving.name == **axis))
        .map(|(words, _)| words)
        .collect();
    let fits = |compared: &&Compared| {
        let places: Vec<&str> = compared.at.split(", ").collect();
        compared.metric == chart.metric
            && asked.iter().all(|words| places.contains(&words.as_str()))
    };
    let drawn: Vec<Compared> = comparisons.iter().filter(fits).cloned().collect();
    let bars: Vec<Bar> = drawn.iter().map(|it| bar(it, &asked)).collect();
    if bars.is_empty() {
        return None;
    }
    let drawing = Drawing::Bars {
        scale: scale(
            &format!("Change of {}", describe(&chart.metric).title),
            Unit::Percent,
        ),
        zero: 0.0,
        bars,
    };
    let caption = format!(
        "Medians of paired ratios. {} A bar whose whiskers cross zero, or that is shorter than the noise floor, decides nothing.",
        whiskers(&drawn)
    );
    Some((drawing, caption))
}

/// `asked` is what all of the picture have in common, and its title says.
fn bar(compared: &Compared, asked: &[String]) -> Bar {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Bar {
        name: name(compared, asked),
        value: percent(compared.ratio),
        low: compared.interval.map(|(low, _)| percent(low)),
        high: compared.interval.map(|(_, high)| percent(high)),
        tone: compared.verdict.tone(),
    }
}

/// The comparison, and where it is, without what is asked for.
fn name(compared: &Compared, asked: &[String]) -> String {
    let ending = format!(" at {}", compared.at);
    let Some(what) = compared.title.strip_suffix(&ending) else {
        return compared.title.clone();
    };
    let places = compared.at.split(", ");
    let places: Vec<&str> = places
        .filter(|place| !asked.iter().any(|asked| asked == place))
        .collect();
    if places.is_empty() {
        return String::from(what);
    }
    format!("{what} at {}", places.join(", "))
}
