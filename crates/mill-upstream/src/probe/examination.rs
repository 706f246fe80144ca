//! The tests of a `match` block on an answer.

use crate::select::crc32::Crc32;
use mill_config::config::health_check::{Checksum, HeaderCondition, HeaderTest};
use mill_config::config::{Match, Template, Variable};
use std::cell::Cell;
use std::fmt;

/// A test of an answer, in the words of NGINX Plus' log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    Status,
    Header,
    Body,
    Checksum,
    Variables,
    /// Of `type=grpc`: the status of the call.
    GrpcStatus,
    /// The same: what the service says of its health.
    GrpcHealth,
}

impl Test {
    /// What follows `peer is unhealthy while` in the log.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Status => "checking status code",
            Self::Header => "checking header",
            Self::Body => "checking body",
            Self::Checksum => "checking CRC-32",
            Self::Variables => "checking variables",
            Self::GrpcStatus => "checking gRPC status",
            Self::GrpcHealth => "checking gRPC health",
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.words())
    }
}

/// Tests the status, 200 to 399 without a block, then the header. Returns the last test if all hold, else the one which
/// does not. `evaluate` makes the text of a template.
pub fn examine_head(
    matching: Option<&Match>,
    status: u16,
    lines: &[(&[u8], &[u8])],
    mut evaluate: impl FnMut(&Template) -> Vec<u8>,
) -> Result<Test, Test> {
    let Some(matching) = matching else {
        let is_usual = (200..=399).contains(&status);
        return is_usual.then_some(Test::Status).ok_or(Test::Status);
    };
    if !matching.admits_status(status) {
        return Err(Test::Status);
    }
    for test in &matching.headers {
        if !holds(test, lines, &mut evaluate) {
            return Err(Test::Header);
        }
    }
    if matching.headers.is_empty() {
        Ok(Test::Status)
    } else {
        Ok(Test::Header)
    }
}

/// A test holds if one line of the field does what it says; of those with `!`, none may.
fn holds(
    test: &HeaderTest,
    lines: &[(&[u8], &[u8])],
    evaluate: &mut impl FnMut(&Template) -> Vec<u8>,
) -> bool {
    let named = lines
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(&test.name));
    let mut values = named.map(|(_, value)| *value);
    let mut has = |wanted: &Template| {
        let wanted = evaluate(wanted);
        values.by_ref().any(|value| *value == *wanted)
    };
    match &test.condition {
        HeaderCondition::Equal(wanted) => has(wanted),
        HeaderCondition::Unequal(unwanted) => !has(unwanted),
        HeaderCondition::Present => values.next().is_some(),
        HeaderCondition::Absent => values.next().is_none(),
        HeaderCondition::Matches(pattern) => values.any(|value| pattern.is_match(value)),
        HeaderCondition::Differs(pattern) => !values.any(|value| pattern.is_match(value)),
    }
}

/// Tests the checksum of the content, of which `content` is the beginning; `first` is that of the first answer, once there
/// was one. `None`: the block has no such test.
pub fn examine_checksum(
    matching: &Match,
    content: &[u8],
    first: &Cell<Option<u32>>,
) -> Result<Option<Test>, Test> {
    let Some(wanted) = matching.checksum else {
        return Ok(None);
    };
    let sum = Crc32::default().update(content).value();
    let wanted = match wanted {
        Checksum::Is(wanted) => wanted,
        Checksum::OfFirst => {
            let known = first.get().unwrap_or(sum);
            first.set(Some(known));
            known
        }
    };
    match sum == wanted {
        true => Ok(Some(Test::Checksum)),
        false => Err(Test::Checksum),
    }
}

/// Tests the content, of which `content` is the beginning, then the variables. `None`: the block has no such test.
pub fn examine_content(
    matching: &Match,
    content: &[u8],
    mut evaluate: impl FnMut(&Variable) -> Vec<u8>,
) -> Result<Option<Test>, Test> {
    let mut last = None;
    if let Some(body) = &matching.body {
        if body.pattern.is_match(content) == body.negated {
            return Err(Test::Body);
        }
        last = Some(Test::Body);
    }
    for variable in &matching.require {
        if matches!(&evaluate(variable)[..], b"" | b"0") {
            return Err(Test::Variables);
        }
        last = Some(Test::Variables);
    }
    Ok(last)
}
