//! Sentences on the change of a figure: `RPS is increased from 33585.56 to 36087.54 (+8%)`.

use super::gain_arithmetic::gain_of;
use crate::output::quantity::Quantity;

/// One such sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change<'a> {
    /// The words before "from": what changed.
    pub(super) subject: &'a str,
    pub(super) from: Quantity,
    pub(super) to: Quantity,
    /// The unit behind the second figure, without blanks: `ms`, `%`, or nothing.
    pub(super) unit: &'a str,
    /// The share in the brackets that follow.
    gain: Option<Gain>,
}

/// A share as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gain {
    share: Quantity,
    /// The sign before it, if there is one.
    sign: Option<Sign>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Plus,
    Minus,
}

/// The change in a line, if there is one.
pub(super) fn of_line(line: &str) -> Option<Change<'_>> {
    let (subject, rest) = line.split_once(" from ")?;
    let (from, rest) = rest.split_once(" to ")?;
    let (from, unit_from) = figure(from)?;
    let to = rest.split_whitespace().next()?;
    let (to, unit) = figure(to.trim_end_matches(['.', ',', ';']))?;
    // Both figures have to be in one unit, which may follow the second one only.
    if !unit_from.is_empty() && unit != unit_from {
        return None;
    }
    Some(Change {
        subject,
        from,
        to,
        unit,
        gain: bracket(rest),
    })
}

impl Change<'_> {
    /// What is wrong with the share, if it is: neither the gain of the two figures, rounded or cut, nor, of shares, their
    /// difference in points; or its sign says the opposite of the figures.
    pub(super) fn wrong_gain(&self) -> Option<String> {
        let gain = self.gain?;
        let said = gain.share;
        let expected = gain_of(self.from, self.to)?;
        let points = self.to.value - self.from.value;
        let is_opposite = match gain.sign {
            Some(Sign::Plus) => points < 0.0,
            Some(Sign::Minus) => points > 0.0,
            None => false,
        };
        let fits = |expected: f64, half_width: f64| {
            let apart = (said.value.abs() - expected.abs()).abs();
            let is_rounded = apart <= said.half_width + half_width + ROUNDING;
            let unit = said.half_width * 2.0;
            let is_cut = said.value.abs() <= expected.abs() + half_width && apart < unit;
            is_rounded || is_cut
        };
        let is_share = self.unit == "%";
        let is_right = fits(expected.value, expected.half_width)
            || (is_share && fits(points, self.from.half_width + self.to.half_width));
        if is_right && !is_opposite {
            return None;
        }
        let value = match gain.sign {
            Some(Sign::Minus) => -said.value.abs(),
            Some(Sign::Plus) | None => said.value,
        };
        Some(format!(
            "from {} to {} is {:+.2} %, not {value:+} %",
            self.from.value, self.to.value, expected.value
        ))
    }
}

/// A number and its unit: `12ms`, `87.40%`, `231K`.
fn figure(text: &str) -> Option<(Quantity, &str)> {
    let text = text.trim();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | ','))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = Quantity::plain(number)?;
    let unit = unit.trim();
    unit.chars()
        .all(|letter| letter.is_alphabetic() || matches!(letter, '%' | '/' | 'µ'))
        .then_some((number, unit))
}

/// `(+8%)`, `(-10%)`, `(99%?)`.
fn bracket(text: &str) -> Option<Gain> {
    let (_, rest) = text.split_once('(')?;
    let (inside, _) = rest.split_once('%')?;
    let sign = match inside.trim_start().chars().next() {
        Some('+') => Some(Sign::Plus),
        Some('-' | '−') => Some(Sign::Minus),
        _ => None,
    };
    let digits = inside.trim_start_matches([' ', '+', '-', '−']);
    let share = Quantity::plain(digits)?;
    Some(Gain { share, sign })
}

/// Percentage points that arithmetic in doubles may add.
const ROUNDING: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_that_does_not_follow_is_reported_with_the_right_one() {
        let check = |line: &str, expected: Option<&str>| {
            let change = of_line(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(change.wrong_gain().as_deref(), expected, "{line}");
        };
        check("It rose from 100 to 110 (+10%)", None);
        check(
            "It rose from 100.0 to 113.0 (+10%)",
            Some("from 100 to 113 is +13.00 %, not +10 %"),
        );
        // Rounded, and cut.
        check("It rose from 1000.0 to 1074.9 (+7%)", None);
        check("It fell from 1000.0 to 4.0 (99%?)", None);
        check(
            "It rose from 1000.0 to 1074.0 (+8%)",
            Some("from 1000 to 1074 is +7.40 %, not +8 %"),
        );
        // Points of shares.
        check("idle from 45.50% to 35.12% (-10%)", None);
        check("idle from 45.50% to 35.12% (-22.8%)", None);
        check("calls from 231K to 289K, (+25%), why?", None);
        check("latency from 12ms to 12ms (0%)", None);
        check("It rose from 100 to 110", None);
        // A sign gives the direction.
        check("It fell from 110 to 99 (-10%)", None);
        check(
            "It fell from 110 to 99 (+10%)",
            Some("from 110 to 99 is -10.00 %, not +10 %"),
        );
        check(
            "It rose from 100 to 110 (-10%)",
            Some("from 100 to 110 is +10.00 %, not -10 %"),
        );
    }

    #[test]
    fn other_sentences_are_left_alone() {
        for line in [
            "gains increasing from 52% with more workers to 102% as they grow (8%)",
            "from here to there",
            "reads from 10 ms to 3 MB (5%)",
            "",
        ] {
            let wrong = of_line(line).and_then(|change| change.wrong_gain());
            assert_eq!(wrong, None, "{line}");
        }
    }
}
