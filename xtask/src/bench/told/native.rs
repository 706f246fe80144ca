//! The JSON of `millstream load`: schema 1, as docs/load.md describes it.

use std::time::Duration;

use serde_json::Value;

use super::{Latency, Told};

/// What only our own client tells, besides what all tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::bench) struct Native {
    pub(in crate::bench) told: Told,
    /// The verdict's word and its sentence.
    pub(in crate::bench) word: String,
    pub(in crate::bench) sentence: String,
    pub(in crate::bench) started: u64,
    /// Requests that were due and never begun.
    pub(in crate::bench) never_started: u64,
    /// Requests begun more than 50 µs and 1 ms after they were due.
    pub(in crate::bench) late_50us: u64,
    pub(in crate::bench) late_1ms: u64,
    /// How much later than due requests began; open loop only.
    pub(in crate::bench) lateness: Latency,
    pub(in crate::bench) answers: Vec<Answers>,
    /// Connections open at the end.
    pub(in crate::bench) open: u64,
    /// Answers a second in each period, the last one too, which may be short.
    pub(in crate::bench) series: Vec<f64>,
}

/// Those that were alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) struct Answers {
    pub(in crate::bench) status: u64,
    pub(in crate::bench) content_bytes: u64,
    pub(in crate::bench) count: u64,
}

pub(in crate::bench) fn parse(text: &str) -> Option<Native> {
    let document: Value = serde_json::from_str(text).ok()?;
    let summary = document.get("summary")?;
    let tally = document.get("results")?.get("tally")?;
    let verdict = document.get("verdict")?;
    let word = |name: &str| Some(verdict.get(name)?.as_str()?.to_owned());
    let failed = number(summary, "failed")?;
    Some(Native {
        told: Told {
            requests: number(summary, "answered")?,
            duration: Duration::from_nanos(number(summary, "measured_ns")?),
            bytes: number(tally, "bytes_received")?,
            errors: failed + number(tally, "statuses_bad")?,
            latency: summary.get("latency").map(latency)?,
        },
        word: word("word")?,
        sentence: word("sentence")?,
        started: number(summary, "started")?,
        never_started: number(summary, "never_started")?,
        late_50us: number(tally, "late_50us")?,
        late_1ms: number(tally, "late_1ms")?,
        lateness: summary.get("lateness").map(latency).unwrap_or_default(),
        answers: answers(document.get("results")?.get("answers")?)?,
        open: number(tally, "open").unwrap_or(0),
        series: series(document.get("results")?).unwrap_or_default(),
    })
}

/// Of `results.periods`.
fn series(results: &Value) -> Option<Vec<f64>> {
    let periods = results.get("periods")?.as_array()?.iter().map(|period| {
        let ns = number(period, "end_ns")?.checked_sub(number(period, "begin_ns")?)?;
        Some(number(period, "answered")? as f64 * 1e9 / ns.max(1) as f64)
    });
    periods.collect()
}

/// Lists of a status, the content's bytes and how many; the client counts the first few kinds apart.
fn answers(object: &Value) -> Option<Vec<Answers>> {
    let kinds = object.get("kinds")?.as_array()?.iter().map(|kind| {
        let at = |index: usize| kind.get(index)?.as_u64();
        Some(Answers {
            status: at(0)?,
            content_bytes: at(1)?,
            count: at(2)?,
        })
    });
    kinds.collect()
}

fn number(object: &Value, name: &str) -> Option<u64> {
    object.get(name)?.as_u64()
}

fn latency(figures: &Value) -> Latency {
    let ms = |name: &str| Some(number(figures, name)? as f64 / 1e6);
    Latency {
        p50: ms("p50_ns"),
        p90: ms("p90_ns"),
        p99: ms("p99_ns"),
        p999: ms("p99_9_ns"),
        max: ms("max_ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answers, Duration, Latency, parse};

    const DOCUMENT: &str = r#"{"schema": 1,
        "summary": {"measured_ns": 2000000000, "answered": 90, "failed": 3, "started": 95,
            "never_started": 4, "latency": {"p50_ns": 500000, "p90_ns": 900000, "p99_ns": 1000000,
            "p99_9_ns": 2000000, "max_ns": 3000000}, "lateness": null},
        "results": {"tally": {"bytes_received": 8500, "statuses_bad": 2, "late_50us": 7, "late_1ms": 1, "open": 3},
            "periods": [{"begin_ns": 0, "end_ns": 1000000000, "answered": 60}, {"begin_ns": 1000000000, "end_ns": 1500000000, "answered": 30}],
            "answers": {"kinds": [[200, 1000, 88], [404, 9, 2]], "others": 0}},
        "verdict": {"word": "paced", "sentence": "The rate was kept."}}"#;

    #[test]
    fn the_document_is_read() {
        let native = parse(DOCUMENT).unwrap();
        assert_eq!(native.told.duration, Duration::from_secs(2));
        assert_eq!((native.told.requests, native.told.errors), (90, 5));
        let expected = [0.5, 0.9, 1.0, 2.0, 3.0].map(Some);
        assert_eq!(native.told.latency.all(), expected);
        assert_eq!(native.lateness, Latency::default());
        assert_eq!(
            (native.late_50us, native.late_1ms, native.never_started),
            (7, 1, 4)
        );
        assert_eq!(native.word, "paced");
        assert_eq!((native.open, native.series), (3, vec![60.0; 2]));
        let not_found = Answers {
            status: 404,
            content_bytes: 9,
            count: 2,
        };
        assert_eq!(native.answers[1..], [not_found]);
    }

    #[test]
    fn another_document_is_refused() {
        for text in ["", "{}", "[1]", r#"{"summary": {}}"#] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert_eq!(parse(&DOCUMENT.replace("\"late_50us\"", "\"late\"")), None);
    }
}
