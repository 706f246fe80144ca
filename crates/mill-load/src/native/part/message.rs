//! The messages between the conductor and its parts: one JSON object a line.

use crate::native::part::wire;
use crate::native::results::Results;
use crate::native::series::Period;
use mill_runtime::time::Instant;
use serde_json::{Value, json};

/// From a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartMessage {
    Hello {
        version: String,
    },
    Ready,
    Interval(Box<Period>),
    Result(Box<Results>),
    /// It could not run its part: a message.
    Failed(String),
}

/// From the conductor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Start(Instant),
    Stop,
}

impl PartMessage {
    pub(super) fn emit(&self) -> String {
        let value = match self {
            Self::Hello { version } => json!({ "hello": version }),
            Self::Ready => json!({ "ready": true }),
            Self::Interval(period) => json!({ "interval": period }),
            Self::Result(results) => json!({ "result": wire::emit(results) }),
            Self::Failed(sentence) => json!({ "failed": sentence }),
        };
        value.to_string()
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let Value::Object(object) = serde_json::from_str(line).ok()? else {
            return None;
        };
        let (word, value) = object.into_iter().next()?;
        match word.as_str() {
            "hello" => Some(Self::Hello {
                version: String::from(value.as_str()?),
            }),
            "ready" => Some(Self::Ready),
            "interval" => Some(Self::Interval(Box::new(wire::parse_period(&value)?))),
            "result" => Some(Self::Result(Box::new(wire::parse(&value)?))),
            "failed" => Some(Self::Failed(String::from(value.as_str()?))),
            _ => None,
        }
    }
}

impl Order {
    pub(super) fn emit(self) -> String {
        match self {
            Self::Start(at) => json!({ "start_ns": at.as_nanos() }),
            Self::Stop => json!({ "stop": true }),
        }
        .to_string()
    }

    pub(super) fn parse(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        if value.get("stop").is_some() {
            return Some(Self::Stop);
        }
        let at = value.get("start_ns")?.as_u64()?;
        Some(Self::Start(Instant::from_nanos(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::merge::tests::part;
    use core::time::Duration;

    #[test]
    fn messages_are_parsed_as_they_were_emitted() {
        let results = part(&[Duration::from_millis(3); 10]);
        let all = [
            PartMessage::Hello {
                version: String::from("1.2.3"),
            },
            PartMessage::Ready,
            PartMessage::Interval(Box::new(results.periods[1].clone())),
            PartMessage::Result(Box::new(results)),
            PartMessage::Failed(String::from("no \"descriptor\"\nleft")),
        ];
        for said in all {
            let line = said.emit();
            assert!(!line.contains('\n'));
            assert_eq!(PartMessage::parse(&line), Some(said));
        }
        for order in [Order::Start(Instant::from_nanos(u64::MAX - 1)), Order::Stop] {
            assert_eq!(Order::parse(&order.emit()), Some(order));
        }
    }

    #[test]
    fn malformed_lines_are_no_messages() {
        for line in [
            "",
            "{}",
            "[]",
            "hello",
            "{\"hello\":1}",
            "{\"result\":{}}",
            "{\"interval\":[]}",
            "{\"start_ns\":-1}",
        ] {
            assert_eq!(PartMessage::parse(line), None, "{line}");
            assert_eq!(Order::parse(line), None, "{line}");
        }
    }
}
