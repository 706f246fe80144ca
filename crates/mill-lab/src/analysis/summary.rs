//! The first thing read: what is faster, by how much, how sure; where it ends; what is missing.

use super::limits;
use super::measured::{Filter, Measured, is_disturbed, named, over};
use super::wording::{
    counted, percent, percent_of_log, signed_percent, span_of_shares, spoken, spoken_apart,
};
use crate::findings::{Compared, Noise, Statement, Tone, Verdict};
use crate::metric::{Metric, describe};
use crate::record::{Status, TrialRecord};
use crate::statistics::{median, quantile};

/// The most important first.
pub(super) fn statements(
    measured: &Measured<'_>,
    comparisons: &[Compared],
    noise: Option<&Noise>,
) -> Vec<Statement> {
    let mut statements = compared(&families(comparisons));
    // Decided things first, as the recipe orders them.
    statements.sort_by_key(|statement| match statement.tone {
        Tone::Gain | Tone::Loss => 0,
        Tone::Same => 1,
        Tone::Unsure | Tone::Plain => 2,
    });
    let plain = |text: String| Statement {
        tone: Tone::Plain,
        text,
    };
    if let Some(text) = disturbed(measured) {
        let tone = Tone::Plain;
        statements.insert(0, Statement { tone, text });
    }
    statements.extend(peaks(measured).map(plain));
    statements.extend(limits::overall(measured).map(plain));
    statements.extend(limits::saturation(measured).into_iter().map(plain));
    statements.extend(noise.map(|noise| plain(noise.text.clone())));
    if noise.is_none() && !comparisons.is_empty() {
        statements.push(plain(String::from(
            "No system ran twice in a block, so there is no noise floor: verdicts rest on the spread of their own pairs.",
        )));
    }
    statements.extend(missing(measured).map(plain));
    statements
}

/// Figures of a machine that others used: the first thing to know of them.
fn disturbed(measured: &Measured<'_>) -> Option<String> {
    let all = measured.trials.iter().copied();
    let disturbed: Vec<&TrialRecord> = all.filter(|trial| is_disturbed(trial)).collect();
    if super::leftovers::counts(measured).disturbed_used == 0 {
        return None;
    }
    let ran = measured
        .trials
        .iter()
        .filter(|trial| is_disturbed(trial) || trial.status == Status::Measured);
    Some(format!(
        "Warning: the machine was busy: others took {} of its CPU time in {} of {}. Where no trial was left undisturbed, disturbed ones are used and \
         marked: such figures are of what was left, and change from run to run. Repeat on a quiet machine; `millstream lab env` lists \
         what uses it now.",
        span_of_shares(&disturbed),
        disturbed.len(),
        counted(ran.count(), "trial"),
    ))
}

/// Comparisons that differ only in where they were made.
fn families(comparisons: &[Compared]) -> Vec<Vec<&Compared>> {
    let mut families: Vec<Vec<&Compared>> = Vec::new();
    for compared in comparisons {
        let key = |c: &Compared| {
            (
                c.factor.clone(),
                c.metric.clone(),
                c.from.clone(),
                c.to.clone(),
            )
        };
        match families
            .iter_mut()
            .find(|family| key(family[0]) == key(compared))
        {
            Some(family) => family.push(compared),
            None => families.push(vec![compared]),
        }
    }
    families
}

/// Families as sentences; those of the same two sides that decided nothing share one.
fn compared(families: &[Vec<&Compared>]) -> Vec<Statement> {
    let unsure = |family: &Vec<&Compared>| {
        family
            .iter()
            .all(|compared| compared.verdict == Verdict::Inconclusive)
    };
    let sides = |family: &Vec<&Compared>| {
        let first = family[0];
        (first.factor.clone(), first.from.clone(), first.to.clone())
    };
    let mut statements: Vec<Statement> = Vec::new();
    let mut told: Vec<(String, String, String)> = Vec::new();
    for family in families {
        let alike: Vec<&Vec<&Compared>> = families
            .iter()
            .filter(|other| unsure(other) && sides(other) == sides(family))
            .collect();
        if !unsure(family) || alike.len() < 2 {
            statements.push(family_told(family));
        } else if !told.contains(&sides(family)) {
            told.push(sides(family));
            statements.push(unsure_told(&alike));
        }
    }
    statements
}

fn unsure_told(families: &[&Vec<&Compared>]) -> Statement {
    let all: Vec<&Compared> = families
        .iter()
        .flat_map(|family| family.iter().copied())
        .collect();
    let change = |compared: &&&Compared| {
        let title = describe(&compared.metric).title;
        let at = if compared.at.is_empty() || families.iter().all(|family| family.len() == 1) {
            String::new()
        } else {
            format!(" at {}", compared.at)
        };
        let change = signed_percent(percent_of_log(compared.ratio.ln()));
        format!("{title}{at}: {change} %")
    };
    let shown: Vec<String> = all.iter().take(UNSURE_SHOWN).map(|c| change(&c)).collect();
    let more = match all.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let pairs = all.iter().map(|compared| compared.pairs).min().unwrap_or(0);
    Statement {
        tone: Tone::Unsure,
        text: format!(
            "{}: {} against {}: nothing decided in {}, from {}{} each. {}{more}.",
            all[0].factor,
            all[0].to,
            all[0].from,
            counted(all.len(), "comparison"),
            counted(pairs, "pair"),
            if all.iter().all(|compared| compared.pairs == pairs) {
                ""
            } else {
                " or more"
            },
            shown.join("; ")
        ),
    }
}

fn family_told(family: &[&Compared]) -> Statement {
    let first = family[0];
    let metric = describe(&first.metric);
    let head = format!(
        "{}: {} against {}, {}",
        first.factor, first.to, first.from, metric.title
    );
    if let [only] = family {
        let at = if only.at.is_empty() {
            String::new()
        } else {
            format!(" at {}", only.at)
        };
        let text = format!(
            "{head}{at}: {}; {}{}.",
            // The report puts "inconclusive" before the sentence.
            only.words
                .strip_prefix("inconclusive: ")
                .unwrap_or(&only.words),
            figures(only, &metric),
            cautioned(only)
        );
        return Statement {
            tone: only.verdict.tone(),
            text,
        };
    }
    let of = |verdict| family.iter().filter(|c| c.verdict == verdict).count();
    let (better, worse) = (of(Verdict::Better), of(Verdict::Worse));
    let (same, unsure) = (of(Verdict::NoDifference), of(Verdict::Inconclusive));
    let counts = [
        (better, "better"),
        (worse, "worse"),
        (same, "no difference"),
        (unsure, "inconclusive"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{word} at {count}"))
        .collect();
    let mut text = format!(
        "{head}: {} of {}",
        counts.join(", "),
        counted(family.len(), "point")
    );
    for (verdict, word) in [(Verdict::Better, "most"), (Verdict::Worse, "worst")] {
        if let Some(extreme) = extreme(family, verdict) {
            text.push_str(&format!(
                "; {word} at {}: {}; {}{}",
                extreme.at,
                extreme.words,
                figures(extreme, &metric),
                cautioned(extreme)
            ));
        }
    }
    text.push('.');
    let tone = match (better, worse, same, unsure) {
        (0, 0, 0, _) => Tone::Unsure,
        (0, 0, _, 0) => Tone::Same,
        (0, 0, _, _) => Tone::Unsure,
        (b, w, _, _) if b > 0 && w == 0 => Tone::Gain,
        (0, _, _, _) => Tone::Loss,
        _ => Tone::Plain,
    };
    Statement { tone, text }
}

/// The figures that have this ratio: medians of all pairs' sides may have another.
fn figures(compared: &Compared, metric: &Metric) -> String {
    let (from, to) = spoken_apart((compared.from_figure, compared.to_figure), metric);
    match compared.pairs {
        1 => format!("from {from} to {to}"),
        pairs if pairs % 2 == 1 => format!("from {from} to {to} in the middle pair"),
        _ => format!("from {from} to {to} in the two middle pairs"),
    }
}

/// The widest change of a verdict.
fn extreme<'a>(family: &[&'a Compared], verdict: Verdict) -> Option<&'a Compared> {
    family
        .iter()
        .filter(|compared| compared.verdict == verdict)
        .max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()))
        .copied()
}

fn cautioned(compared: &Compared) -> String {
    compared
        .caution
        .as_ref()
        .map(|caution| format!(" ({caution})"))
        .unwrap_or_default()
}

/// The highest median rate of each system, what single trials reached there, and where that is.
fn peaks<'a>(measured: &'a Measured<'_>) -> impl Iterator<Item = String> + 'a {
    let moving: Vec<String> = measured
        .moving_axes()
        .iter()
        .map(|axis| axis.name.clone())
        .filter(|name| name != "system")
        .collect();
    let metric = "requests_per_s";
    measured
        .names_at("system", &Filter::new())
        .into_iter()
        .filter_map(move |system| {
            if moving.is_empty() {
                return None;
            }
            let side = Filter::from([(String::from("system"), named(&system))]);
            let (place, rate) = measured
                .combinations(&moving, &side)
                .into_iter()
                .filter_map(|place| {
                    let rate = median(&measured.values(&over(&[&side, &place]), metric))?;
                    Some((place, rate))
                })
                .max_by(|a, b| a.1.total_cmp(&b.1))?;
            let here = over(&[&side, &place]);
            let limit = measured
                .limit(&here)
                .map(|side| format!(", {}", side.word()));
            let values = measured.values(&here, metric);
            let described = describe(metric);
            let trials = match (quantile(&values, 0.0), quantile(&values, 1.0)) {
                (Some(least), Some(most)) if values.len() > 1 => format!(
                    " ({}, {} to {})",
                    counted(values.len(), "trial"),
                    spoken(least, &described),
                    spoken(most, &described)
                ),
                _ => String::from(" (1 trial)"),
            };
            Some(format!(
                "{}: highest median {} requests/s{trials}, at {}{}.",
                measured.title("system", &system),
                spoken(rate, &described),
                measured.told(&place),
                limit.unwrap_or_default()
            ))
        })
}

/// What the reader will miss.
fn missing<'a>(measured: &'a Measured<'_>) -> impl Iterator<Item = String> + 'a {
    let mut sentences: Vec<String> = Vec::new();
    let mut by_reason: Vec<(&String, Vec<String>)> = Vec::new();
    let systems = measured.names_at("system", &Filter::new());
    for system in systems {
        let at = Filter::from([(String::from("system"), named(&system))]);
        let trials = measured.at(&at);
        if let Some(reason) = most_frequent_reason(&trials)
            && measured.usable(&at).is_empty()
        {
            let title = measured.title("system", &system);
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, titles)) => titles.push(title),
                None => by_reason.push((reason, vec![title])),
            }
        }
    }
    for (reason, titles) in by_reason {
        sentences.push(format!("Missing: {} ({reason}).", titles.join("; ")));
    }
    let counts = super::leftovers::counts(measured);
    let mut parts: Vec<String> = Vec::new();
    for (count, word) in [
        (
            counts.disturbed - counts.disturbed_used,
            "disturbed and not used",
        ),
        (counts.failed, "failed"),
        (counts.missing, "not run"),
    ] {
        if count > 0 {
            parts.push(format!("{} {word}", counted(count, "trial")));
        }
    }
    if !parts.is_empty() {
        let all = crate::statistics::number(measured.kept.run.trials.max(1));
        let used = counts.measured + counts.disturbed_used;
        let share = crate::statistics::number(used) / all * 100.0;
        sentences.push(format!(
            "{}; {} measured, {} % of the plan.",
            parts.join(", "),
            counted(used, "trial"),
            percent(share)
        ));
    }
    sentences.into_iter()
}

/// Why most of these trials have no figure; of equally many the first. A trial without a load, because probes run
/// once, does not count where another trial of its system failed.
fn most_frequent_reason<'a>(trials: &[&'a TrialRecord]) -> Option<&'a String> {
    let failed = trials.iter().filter_map(|trial| match &trial.status {
        Status::Failed { reason } => Some(reason),
        _ => None,
    });
    let absent = trials.iter().filter_map(|trial| match &trial.status {
        Status::Absent { reason } => Some(reason),
        _ => None,
    });
    let mut reasons: Vec<&String> = failed.collect();
    if reasons.is_empty() {
        reasons = absent.collect();
    }
    let count = |reason: &&&String| reasons.iter().filter(|other| *other == *reason).count();
    let most = reasons.iter().map(|reason| count(&reason)).max()?;
    reasons.iter().find(|reason| count(reason) == most).copied()
}

/// Changes that one sentence of inconclusive comparisons names.
const UNSURE_SHOWN: usize = 4;
