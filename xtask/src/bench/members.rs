//! Members of the JSON documents that every measurement has.

use super::json::Value;
use super::machine::Machine;
use super::ratio::Ratio;

/// Of an object, in their order.
pub(super) type Members = Vec<(&'static str, Value)>;

/// What a document begins with.
pub(super) fn head(command_line: &str, machine: &Machine) -> Members {
    vec![
        ("command_line", Value::text(command_line)),
        ("date", Value::text(&machine.date)),
        (
            "machine",
            Value::list(&machine.lines(), |line| Value::text(line)),
        ),
    ]
}

/// The ratio of a figure to that of `to`.
pub(super) fn ratio(to: &str, figure: &str, ratio: Ratio) -> Members {
    vec![
        ("to", Value::text(to)),
        ("figure", Value::text(figure)),
        ("mean", Value::Number(ratio.mean)),
        ("low", Value::Number(ratio.low)),
        ("high", Value::Number(ratio.high)),
        ("pairs", Value::Number(ratio.pairs as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::{Ratio, Value, ratio};

    fn check(value: &Value, expected: &str) {
        let mut out = String::new();
        value.emit(&mut out);
        assert_eq!(out.replace('\n', ""), expected);
    }

    #[test]
    fn figures_are_told_by_name() {
        let one_pair = Ratio {
            mean: 0.5,
            low: 0.0,
            high: f64::INFINITY,
            pairs: 1,
        };
        check(
            &Value::Object(ratio("wrk", "cpu", one_pair)),
            r#"{"to":"wrk","figure":"cpu","mean":0.5,"low":0,"high":null,"pairs":1}"#,
        );
    }
}
