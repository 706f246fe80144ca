//! h2load's report. It tells no percentiles, only the longest time.

use std::time::Duration;

use super::{Latency, Told};

pub(in crate::bench) fn parse(text: &str) -> Option<Told> {
    let finished = line(text, "finished in ")?;
    let duration_ms = millis(finished.split(',').next()?)?;
    let requests = line(text, "requests: ")?;
    let statuses = line(text, "status codes: ")?;
    let traffic = line(text, "traffic: ")?;
    let (_, bytes) = traffic.split_once('(')?;
    let times = line(text, "time for request: ")?;
    let bad = count(statuses, "4xx")? + count(statuses, "5xx")?;
    Some(Told {
        requests: count(requests, "done")?,
        duration: Duration::from_secs_f64(duration_ms / 1000.0),
        bytes: bytes.split(')').next()?.parse().ok()?,
        errors: count(requests, "errored")? + bad,
        latency: Latency {
            max: times.split_whitespace().nth(1).and_then(millis),
            ..Latency::default()
        },
    })
}

fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim)
}

/// The number before `name` in a list such as "4 done, 3 failed".
fn count(list: &str, name: &str) -> Option<u64> {
    let mut parts = list.split(',').map(str::trim);
    parts.find_map(|part| part.strip_suffix(name)?.trim().parse().ok())
}

fn millis(text: &str) -> Option<f64> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "us" => 0.001,
        "ms" => 1.0,
        "s" => 1000.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::{Duration, Latency, Told, parse};

    const REPORT: &str = "\
starting benchmark...
Main benchmark duration is over for thread #0. Stopping all clients.

finished in 1.50s, 37794.00 req/s, 2.23MB/s
requests: 37794 total, 37798 started, 37794 done, 37790 succeeded, 4 failed, 3 errored, 0 timeout
status codes: 37790 2xx, 0 3xx, 1 4xx, 2 5xx
traffic: 2.23MB (2343228) total, 1.26MB (1322825) headers (space savings 0.00%), 0B (0) data
                     min         max         mean         sd        +/- sd
time for request:       16us     19.10ms       104us       380us    98.74%
time for connect:        6us        44us        29us        16us    75.00%
";

    #[test]
    fn the_report_is_read() {
        let expected = Told {
            requests: 37_794,
            duration: Duration::from_millis(1500),
            bytes: 2_343_228,
            errors: 6,
            latency: Latency {
                max: Some(19.10),
                ..Latency::default()
            },
        };
        assert_eq!(parse(REPORT), Some(expected));
    }

    #[test]
    fn a_report_that_breaks_off_is_refused() {
        for lines in [0, 4, 5, 7] {
            let text: Vec<&str> = REPORT.lines().take(lines).collect();
            assert_eq!(parse(&text.join("\n")), None, "{lines}");
        }
    }
}
