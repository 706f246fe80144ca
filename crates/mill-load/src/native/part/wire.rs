//! Results as JSON and back, with nothing lost: histograms in HdrHistogram's V2 form, times in nanoseconds.

use crate::failure::FailureKind;
use crate::native::answers::{Answer, Answers};
use crate::native::measures::Measures;
use crate::native::results::Results;
use crate::native::series::Period;
use crate::silence::Gap;
use core::time::Duration;
use mill_metrics::Histogram;
use mill_runtime::time::UnixTime;
use serde::Deserialize;
use serde_json::{Value, json};

/// Makes JSON of results.
pub fn emit(results: &Results) -> Value {
    let failures: Vec<Value> = results
        .failures
        .iter()
        .map(|(kind, sentence)| json!([kind.name(), sentence]))
        .collect();
    json!({
        "began": [results.began.seconds, results.began.nanos],
        "measured_ns": ns(results.measured),
        "tally": results.tally,
        "measures": emit_measures(&results.measures),
        "answers": emit_answers(&results.answers),
        "failures": failures,
        "periods": results.periods,
        "gaps": results.gaps.iter().map(emit_gap).collect::<Vec<_>>(),
        "machine": results.machine,
        "interrupted": results.interrupted,
        "aborted": results.aborted,
    })
}

/// Reads what [`emit`] made; `None` if it is anything else.
pub fn parse(value: &Value) -> Option<Results> {
    let list = |name: &str| value.get(name)?.as_array();
    let failures = list("failures")?.iter().map(parse_failure);
    let aborted = match value.get("aborted")? {
        Value::Null => None,
        sentence => Some(String::from(sentence.as_str()?)),
    };
    Some(Results {
        began: UnixTime {
            seconds: value.get("began")?.get(0)?.as_i64()?,
            nanos: u32::try_from(value.get("began")?.get(1)?.as_u64()?).ok()?,
        },
        measured: duration(value, "measured_ns")?,
        tally: Deserialize::deserialize(value.get("tally")?).ok()?,
        measures: parse_measures(value.get("measures")?)?,
        answers: parse_answers(value.get("answers")?)?,
        failures: failures.collect::<Option<_>>()?,
        periods: list("periods")?
            .iter()
            .map(parse_period)
            .collect::<Option<_>>()?,
        gaps: match value.get("gaps") {
            // Older documents do not have them.
            None => Vec::new(),
            Some(gaps) => gaps
                .as_array()?
                .iter()
                .map(parse_gap)
                .collect::<Option<_>>()?,
        },
        machine: Deserialize::deserialize(value.get("machine")?).ok()?,
        interrupted: value.get("interrupted")?.as_bool()?,
        aborted,
    })
}

/// One interval, which merging expects to have a valid histogram.
pub fn parse_period(value: &Value) -> Option<Period> {
    let period = Period::deserialize(value).ok()?;
    Histogram::parse(&period.histogram).ok()?;
    Some(period)
}

/// A gap: its beginning, since when requests waited, its end; `null` is never, which is also the end of a gap that did
/// not end.
fn emit_gap(gap: &Gap) -> Value {
    let time = |time| (time != Duration::MAX).then(|| ns(time));
    json!([time(gap.begin), time(gap.waiting_from), time(gap.end)])
}

fn parse_gap(value: &Value) -> Option<Gap> {
    let time = |place: usize| match value.get(place)? {
        Value::Null => Some(Duration::MAX),
        time => time.as_u64().map(Duration::from_nanos),
    };
    Some(Gap {
        begin: time(0)?,
        waiting_from: time(1)?,
        end: time(2)?,
    })
}

fn emit_measures(measures: &Measures) -> Value {
    let optional = |histogram: &Option<Histogram>| histogram.as_ref().map(emit_histogram);
    json!({
        "latency": emit_histogram(&measures.latency),
        "raw": optional(&measures.raw),
        "lateness": optional(&measures.lateness),
        "service": emit_histogram(&measures.service),
        "first_byte": emit_histogram(&measures.first_byte),
        "ttfb": emit_histogram(&measures.ttfb),
        "connect": emit_histogram(&measures.connect),
        "tls": emit_histogram(&measures.tls),
    })
}

fn parse_measures(value: &Value) -> Option<Measures> {
    let histogram = |name: &str| parse_histogram(value.get(name)?);
    let optional = |name: &str| match value.get(name)? {
        Value::Null => Some(None),
        value => parse_histogram(value).map(Some),
    };
    Some(Measures {
        latency: histogram("latency")?,
        raw: optional("raw")?,
        lateness: optional("lateness")?,
        service: histogram("service")?,
        first_byte: histogram("first_byte")?,
        // Older documents have none.
        ttfb: histogram("ttfb").unwrap_or_default(),
        connect: histogram("connect")?,
        tls: histogram("tls")?,
    })
}

fn emit_histogram(histogram: &Histogram) -> Value {
    json!({ "v2": histogram.emit(), "overflowed": histogram.overflowed() })
}

fn parse_histogram(value: &Value) -> Option<Histogram> {
    let histogram = Histogram::parse(value.get("v2")?.as_str()?).ok()?;
    Some(histogram.with_overflowed(count(value, "overflowed")?))
}

fn emit_answers(answers: &Answers) -> Value {
    let kinds: Vec<Value> = answers
        .kinds()
        .map(|kind| json!([kind.status, kind.content_bytes, kind.count]))
        .collect();
    json!({ "kinds": kinds, "others": answers.others() })
}

fn parse_answers(value: &Value) -> Option<Answers> {
    let mut answers = Answers::default();
    for kind in value.get("kinds")?.as_array()? {
        answers.count(Answer {
            status: u16::try_from(kind.get(0)?.as_u64()?).ok()?,
            content_bytes: kind.get(1)?.as_u64()?,
            count: kind.get(2)?.as_u64()?,
        });
    }
    answers.count_others(count(value, "others")?);
    Some(answers)
}

fn parse_failure(value: &Value) -> Option<(FailureKind, String)> {
    let name = value.get(0)?.as_str()?;
    let kind = FailureKind::ALL
        .into_iter()
        .find(|kind| kind.name() == name)?;
    Some((kind, String::from(value.get(1)?.as_str()?)))
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn duration(value: &Value, name: &str) -> Option<Duration> {
    count(value, name).map(Duration::from_nanos)
}

fn count(value: &Value, name: &str) -> Option<u64> {
    value.get(name)?.as_u64()
}

#[cfg(test)]
mod tests;
