//! One factor changed: for each point of the other axes, pairs by block.

use super::Kept;
use super::measured::{Filter, Measured, Pair, is_disturbed, most_voted, named, over};
use super::noise::NoiseOfRun;
use super::verdict::{Case, Test};
use super::wording::{counted, span_of_shares};
use crate::findings::Compared;
use crate::limit::Side;
use crate::metric::{Better, describe};
use crate::recipe::{Comparison, matches};
use crate::record::TrialRecord;
use crate::statistics::{PairedRatio, holm};

/// All comparisons of the recipe, and sentences on those that have no ratio though both sides were measured.
pub(super) fn all(
    measured: &Measured<'_>,
    noise: Option<&NoiseOfRun>,
) -> (Vec<Compared>, Vec<String>) {
    let (mut compared, mut without) = (Vec::new(), Vec::new());
    for comparison in &measured.recipe.compare {
        for metric in &comparison.metrics {
            let sweep = sweep(measured, comparison, metric);
            for point in &sweep {
                if point.ratio.is_none() {
                    without.push(format!(
                        "{} {}: no ratio, because a side is zero or no block has both",
                        describe(metric).title,
                        title(measured, comparison, &point.rest)
                    ));
                }
            }
            compared.extend(judged(measured, comparison, metric, &sweep, noise));
        }
    }
    (compared, without)
}

/// The widest half-width (a share) of the first metric of all comparisons, to compare with `repeat.half_width`. None
/// while a comparison that has both sides lacks an interval, or if there is none.
pub fn widest_half_width(kept: &Kept) -> Option<f64> {
    let measured = Measured::of(kept);
    let mut widest: Option<f64> = None;
    for comparison in &measured.recipe.compare {
        let Some(metric) = comparison.metrics.first() else {
            continue;
        };
        for point in sweep(&measured, comparison, metric) {
            let interval = point.ratio?.interval?;
            let half = (interval.high.exp() - interval.low.exp()) / 2.0;
            widest = Some(widest.map_or(half, |known| known.max(half)));
        }
    }
    widest
}

/// Numbers of disturbed trials that comparisons rest on.
pub(super) fn disturbed_pairs(measured: &Measured<'_>) -> Vec<usize> {
    let mut numbers = Vec::new();
    for comparison in &measured.recipe.compare {
        for metric in &comparison.metrics {
            for point in sweep(measured, comparison, metric) {
                let trials = point.pairs.iter().flat_map(|pair| [pair.from, pair.to]);
                let disturbed = trials.filter(|trial| is_disturbed(trial));
                numbers.extend(disturbed.map(|trial| trial.number));
            }
        }
    }
    numbers
}

/// A point of the other axes with both sides measured.
struct PointOfSweep<'a> {
    rest: Filter,
    pairs: Vec<Pair<'a>>,
    ratio: Option<PairedRatio>,
}

fn sweep<'a>(
    measured: &Measured<'a>,
    comparison: &Comparison,
    metric: &str,
) -> Vec<PointOfSweep<'a>> {
    let others: Vec<String> = measured
        .axes
        .iter()
        .map(|axis| axis.name.clone())
        .filter(|name| *name != comparison.axis)
        .collect();
    let side = |name: &String| Filter::from([(comparison.axis.clone(), named(name))]);
    let (from, to) = (side(&comparison.from), side(&comparison.to));
    measured
        .combinations(&others, &over(&[&comparison.at, &from]))
        .into_iter()
        .filter_map(|rest| {
            let (from, to) = (over(&[&rest, &from]), over(&[&rest, &to]));
            let both = !measured.values(&from, metric).is_empty()
                && !measured.values(&to, metric).is_empty();
            let pairs = measured.pairs(&from, &to, metric);
            let figures: Vec<(f64, f64)> = pairs
                .iter()
                .filter_map(|pair| pair.figures(metric))
                .collect();
            let ratio = PairedRatio::of(&figures);
            both.then_some(PointOfSweep { rest, pairs, ratio })
        })
        .collect()
}

/// The sweep is one family of tests.
fn judged(
    measured: &Measured<'_>,
    comparison: &Comparison,
    metric: &str,
    sweep: &[PointOfSweep<'_>],
    noise: Option<&NoiseOfRun>,
) -> Vec<Compared> {
    let described = describe(metric);
    let with_ratio = || {
        sweep
            .iter()
            .filter_map(|point| Some((point, point.ratio.as_ref()?)))
    };
    let ratios: Vec<&PairedRatio> = with_ratio().map(|(_, ratio)| ratio).collect();
    let test = Test::of(&ratios);
    let raw: Vec<Option<f64>> = ratios.iter().map(|ratio| test.p_value(ratio)).collect();
    let corrected = holm(&raw.iter().map(|p| p.unwrap_or(1.0)).collect::<Vec<f64>>());
    with_ratio()
        .zip(raw.iter().zip(corrected))
        .map(|((point, ratio), (raw_p, p))| {
            let case = Case {
                ratio,
                metric: &described,
                p_value: raw_p.map(|_| p),
                test,
                family: raw.len(),
                noise: noise.and_then(|noise| noise.of(metric)),
                threshold: measured.recipe.repeat.threshold,
            };
            Compared {
                title: title(measured, comparison, &point.rest),
                factor: comparison.factor.clone(),
                metric: String::from(metric),
                at: place(measured, comparison, &point.rest),
                from: measured.title(&comparison.axis, &comparison.from),
                to: measured.title(&comparison.axis, &comparison.to),
                from_figure: ratio.in_the_middle.0,
                to_figure: ratio.in_the_middle.1,
                ratio: ratio.middle.exp(),
                interval: ratio
                    .interval
                    .map(|interval| (interval.low.exp(), interval.high.exp())),
                covers: ratio.interval.map(|interval| interval.covers),
                pairs: ratio.logs.len(),
                p_value: case.p_value,
                verdict: case.verdict(),
                words: case.words(),
                caution: caution(measured, point, described.better),
            }
        })
        .collect()
}

/// "jemalloc : glibc at workers = 1".
fn title(measured: &Measured<'_>, comparison: &Comparison, rest: &Filter) -> String {
    let name = |value: &str| {
        let title = measured.title(&comparison.axis, value);
        if comparison.axis == "system" {
            title
        } else {
            format!("{} {title}", comparison.axis)
        }
    };
    let at = place(measured, comparison, rest);
    let pair = format!(
        "{} : {}",
        name(&comparison.to),
        measured.title(&comparison.axis, &comparison.from)
    );
    if at.is_empty() {
        pair
    } else {
        format!("{pair} at {at}")
    }
}

/// The values of axes that have more than one.
fn place(measured: &Measured<'_>, comparison: &Comparison, rest: &Filter) -> String {
    let moving = measured.moving_axes();
    let mut rest = rest.clone();
    rest.retain(|name, _| *name != comparison.axis && moving.iter().any(|axis| axis.name == *name));
    measured.told(&rest)
}

/// What to think of a ratio where the server was not the limit, or others took CPU time.
fn caution(measured: &Measured<'_>, point: &PointOfSweep<'_>, better: Better) -> Option<String> {
    let cautions = [disturbed(point), limited(measured, point, better)];
    let cautions: Vec<String> = cautions.into_iter().flatten().collect();
    (!cautions.is_empty()).then(|| cautions.join("; "))
}

/// That the pairs were disturbed, and how much.
fn disturbed(point: &PointOfSweep<'_>) -> Option<String> {
    let disturbed = point.pairs.iter().filter(|pair| pair.is_disturbed());
    let trials: Vec<&TrialRecord> = disturbed
        .clone()
        .flat_map(|pair| [pair.from, pair.to])
        .filter(|trial| is_disturbed(trial))
        .collect();
    let count = disturbed.count();
    (count > 0).then(|| {
        format!(
            "others took {} of the machine's CPU time in {count} of {}",
            span_of_shares(&trials),
            counted(point.pairs.len(), "pair")
        )
    })
}

fn limited(measured: &Measured<'_>, point: &PointOfSweep<'_>, better: Better) -> Option<String> {
    type Of = for<'p, 'a> fn(&'p Pair<'a>) -> &'a TrialRecord;
    let elsewhere = |of: Of| {
        let trials: Vec<&TrialRecord> = point.pairs.iter().map(of).collect();
        most_voted(&trials).filter(|side| *side != Side::Server)
    };
    // One side can't hide behind a limit that makes it look slower only where more is better.
    let caps = |side: Side| {
        better == Better::Higher
            && matches!(
                side,
                Side::Client | Side::Link | Side::Ports | Side::Backlog
            )
    };
    let system = |of: Of| {
        let name = point
            .pairs
            .first()
            .and_then(|pair| of(pair).point.get("system"));
        measured.title("system", name.map_or("", String::as_str))
    };
    let (first, second): (Of, Of) = (|pair| pair.from, |pair| pair.to);
    Some(match (elsewhere(first), elsewhere(second)) {
        (None, None) => return None,
        (Some(Side::Nothing), Some(Side::Nothing)) => {
            String::from("neither side was saturated: the ratio is not one of what servers can do")
        }
        (Some(Side::Foreign), Some(Side::Foreign)) => String::from(
            "both were short of CPU time that others took: the ratio is one of what was left to them",
        ),
        (Some(a), Some(b)) if a == b => {
            format!("both were {}: the ratio is not one of servers", said(a))
        }
        (None, Some(to)) if caps(to) => format!(
            "{} was {}: the true ratio is at least this",
            system(second),
            to.word()
        ),
        (Some(from), None) if caps(from) => format!(
            "{} was {}: the true ratio is at most this",
            system(first),
            from.word()
        ),
        (from, to) => {
            let of = |side: Option<Side>| side.map_or("server-bound", said);
            format!(
                "limits differ: {} was {}, {} was {}",
                system(first),
                of(from),
                system(second),
                of(to)
            )
        }
    })
}

/// A limit behind "was".
fn said(side: Side) -> &'static str {
    match side {
        Side::Both => "limited by the CPUs of both sides",
        Side::Polling => "polling, so that a busy CPU tells nothing",
        Side::Foreign => "short of CPU time that others took",
        Side::Unknown => "limited by what is not known",
        side => side.word(),
    }
}

/// Whether a comparison has points at all: its axis has both values somewhere under `at`.
pub(super) fn exists(measured: &Measured<'_>, comparison: &Comparison, value: &str) -> bool {
    let filter = over(&[
        &comparison.at,
        &Filter::from([(comparison.axis.clone(), named(value))]),
    ]);
    measured.points.iter().any(|point| matches(point, &filter))
}
