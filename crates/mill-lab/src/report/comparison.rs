//! A comparison as a row of text, and all of them as bars.

use super::number::{figure, figure_of, significant};
use crate::findings::{Bar, Compared, Drawing, Findings, Picture, Scale, Tone, whiskers};
use crate::metric::{Unit, describe};
use serde::Serialize;

/// The text of one comparison in a page or a Markdown table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) verdict: &'static str,
    pub(super) title: String,
    pub(super) factor: String,
    pub(super) metric: String,
    /// "33,586 → 36,121".
    pub(super) change: String,
    /// "1.075".
    pub(super) ratio: String,
    /// "1.052 to 1.098", or why there is none.
    pub(super) interval: String,
    /// With the number of pairs, on which all depends.
    pub(super) words: String,
    pub(super) caution: Option<String>,
}

impl Row {
    pub(super) fn of(compared: &Compared) -> Self {
        let metric = describe(&compared.metric);
        let tone = compared.verdict.tone();
        let pairs = match compared.pairs {
            1 => String::from("1 pair"),
            pairs => format!("{pairs} pairs"),
        };
        let evidence = match compared.p_value {
            Some(p) if p < 0.0001 => format!("{pairs}, p < 0.0001"),
            Some(p) => format!("{pairs}, p = {}", significant(p, 2)),
            None => pairs,
        };
        Self {
            class: tone.class(),
            sign: tone.sign(),
            verdict: tone.word(),
            title: compared.title.clone(),
            factor: compared.factor.clone(),
            change: change(compared, metric.unit),
            metric: metric.title,
            ratio: ratio(compared.ratio),
            interval: match compared.interval {
                Some((low, high)) => format!("{} to {}", ratio(low), ratio(high)),
                None => String::from("too few pairs"),
            },
            words: {
                // The verdict is already at the beginning.
                let words = compared.words.strip_prefix("inconclusive: ");
                let words = words.unwrap_or(&compared.words);
                if words.contains("pair") {
                    String::from(words)
                } else {
                    format!("{words} ({evidence})")
                }
            },
            caution: compared.caution.clone(),
        }
    }
}

/// The comparisons as a picture, unless the recipe has one of its own.
pub(super) fn bars(findings: &Findings) -> Option<Picture> {
    let drawn = findings
        .charts
        .iter()
        .any(|picture| matches!(picture.drawing, Drawing::Bars { .. }));
    if drawn || findings.comparisons.is_empty() {
        return None;
    }
    let one_metric = findings
        .comparisons
        .windows(2)
        .all(|pair| pair[0].metric == pair[1].metric);
    let bar = |compared: &Compared| Bar {
        name: if one_metric {
            compared.title.clone()
        } else {
            format!("{}: {}", describe(&compared.metric).title, compared.title)
        },
        value: percent(compared.ratio),
        low: compared.interval.map(|(low, _)| percent(low)),
        high: compared.interval.map(|(_, high)| percent(high)),
        tone: compared.verdict.tone(),
    };
    let titles = describe(&findings.comparisons[0].metric).title;
    Some(Picture {
        title: String::from("Changes with their intervals"),
        drawing: Drawing::Bars {
            scale: Scale {
                title: if one_metric {
                    format!("Change of {}", lower_first(&titles))
                } else {
                    String::from("Change")
                },
                unit: Unit::Percent,
                logarithmic: false,
                complement: false,
            },
            zero: 0.0,
            bars: findings.comparisons.iter().map(bar).collect(),
        },
        caption: format!(
            "{} better, {} worse, {} no difference beyond the noise, {} inconclusive. {} One that crosses the line of no change decides nothing.",
            Tone::Gain.sign(),
            Tone::Loss.sign(),
            Tone::Same.sign(),
            Tone::Unsure.sign(),
            whiskers(&findings.comparisons)
        ),
    })
}

/// "33,586 → 36,121"; figures that would read the same though they differ have more digits.
fn change(compared: &Compared, unit: Unit) -> String {
    let (from, to) = (compared.from_figure, compared.to_figure);
    let texts = (figure(from, unit), figure(to, unit));
    if texts.0 != texts.1 || from == to {
        return format!("{} → {}", texts.0, texts.1);
    }
    let apart = (4..=8).map(|digits| (figure_of(from, unit, digits), figure_of(to, unit, digits)));
    let (from, to) = apart
        .into_iter()
        .find(|(from, to)| from != to)
        .unwrap_or(texts);
    format!("{from} → {to}")
}

/// Three decimals, so that ratios above and below one can be compared digit by digit.
fn ratio(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        significant(ratio, 3)
    }
}

/// Change in percent of a ratio.
fn percent(ratio: f64) -> f64 {
    (ratio - 1.0) * 100.0
}

/// "Requests/s" within a sentence; "CPU" stays.
fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_row_says_from_to_and_how_sure() {
        let row = Row::of(&example::jemalloc().comparisons[0]);
        assert_eq!(row.change, "33,586 → 36,121");
        assert_eq!(row.ratio, "1.075");
        assert_eq!(row.interval, "1.052 to 1.098");
        assert_eq!(row.sign, "▲");
        let row = Row::of(&example::jemalloc().comparisons[1]);
        assert_eq!(row.words, "no difference > 2 % (12 pairs, p = 0.00049)");
    }

    #[test]
    fn a_recipe_with_bars_of_its_own_gets_no_second_picture() {
        let mut findings = example::jemalloc();
        let own = bars(&findings).expect("there are comparisons");
        findings.charts.push(own);
        assert_eq!(bars(&findings), None);
    }
}
