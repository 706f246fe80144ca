//! Changes as bars with their intervals.

use super::super::measured::{Filter, Measured, describe};
use super::scale;
use crate::findings::{Bar, Compared, Drawing, Tone, Verdict};
use crate::metric::Unit;
use crate::recipe::Chart;

pub(super) fn bars(
    measured: &Measured<'_>,
    comparisons: &[Compared],
    chart: &Chart,
    at: &Filter,
) -> Option<(Drawing, String)> {
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
    let bars: Vec<Bar> = comparisons.iter().filter(fits).map(bar).collect();
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
    let caption = "Medians of paired ratios; whiskers are 95 % intervals. A bar whose whiskers cross zero, or that is shorter than the noise floor, decides nothing.";
    Some((drawing, String::from(caption)))
}

fn bar(compared: &Compared) -> Bar {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Bar {
        name: compared.title.clone(),
        value: percent(compared.ratio),
        low: compared.interval.map(|(low, _)| percent(low)),
        high: compared.interval.map(|(_, high)| percent(high)),
        tone: tone(compared.verdict),
    }
}

pub(in super::super) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Better => Tone::Gain,
        Verdict::Worse => Tone::Loss,
        Verdict::NoDifference => Tone::Same,
        Verdict::Inconclusive => Tone::Unsure,
    }
}
