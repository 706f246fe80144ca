//! Whole reports, byte for byte.

use super::*;
use crate::dialect::wrk::arguments::{Tool, parse};
use crate::dialect::wrk::statistics::Counters;

fn arguments(line: &str) -> Arguments {
    let words: Vec<Vec<u8>> = line
        .split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect();
    parse(Tool::Wrk, &words).result.unwrap()
}

fn counters(values: impl IntoIterator<Item = (u64, u64)>) -> Counters {
    let mut counters = Counters::up_to(10_000_000);
    for (value, count) in values {
        for _ in 0..count {
            assert!(counters.record(value));
        }
    }
    counters
}

fn report(line: &str, latency: &Counters, requests: &Counters, totals: &Totals) -> String {
    let arguments = arguments(line);
    let mut out = Vec::new();
    emit_banner(&arguments, &mut out).unwrap();
    emit_thread_stats(latency, requests, &mut out).unwrap();
    if arguments.latency {
        emit_distribution(latency, &mut out).unwrap();
    }
    emit_totals(totals, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Columns with given figures, for forms that no small set of samples has.
struct Figures {
    mean: f64,
    stdev: f64,
    max: u64,
    within: f64,
}

impl Statistics for Figures {
    fn min(&self) -> u64 {
        0
    }
    fn max(&self) -> u64 {
        self.max
    }
    fn mean(&self) -> f64 {
        self.mean
    }
    fn stdev(&self) -> f64 {
        self.stdev
    }
    fn percentile(&self, _percent: f64) -> u64 {
        self.max
    }
    fn distinct(&self) -> u64 {
        1
    }
    fn nth(&self, _index: u64) -> Option<(u64, u64)> {
        None
    }
    fn within_stdev(&self) -> f64 {
        self.within
    }
}

/// The sample output in wrk's own documentation, from figures that round to it.
#[test]
fn the_block_of_wrks_own_documentation_is_reproduced() {
    let arguments = arguments("-t12 -c400 -d30s http://127.0.0.1:8080/index.html");
    let mut out = Vec::new();
    emit_banner(&arguments, &mut out).unwrap();
    let latency = Figures {
        mean: 635.91,
        stdev: 890.0,
        max: 12_920,
        within: 93.69,
    };
    let requests = Figures {
        mean: 56_200.0,
        stdev: 8070.0,
        max: 62_000,
        within: 86.54,
    };
    emit_thread_stats(&latency, &requests, &mut out).unwrap();
    let totals = Totals {
        // 22464657 / 748868.53 seconds, and 606.33 MB in each of them.
        runtime: Duration::from_micros(29_998_132),
        requests: 22_464_657,
        bytes: 19_072_240_000,
        errors: SocketErrors::default(),
        statuses_bad: 0,
    };
    emit_totals(&totals, &mut out).unwrap();
    let expected = "\
Running 30s test @ http://127.0.0.1:8080/index.html
  12 threads and 400 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   635.91us    0.89ms  12.92ms   93.69%
    Req/Sec    56.20k     8.07k   62.00k    86.54%
  22464657 requests in 30.00s, 17.76GB read
Requests/sec: 748868.53
Transfer/sec:    606.33MB
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_report_of_fixed_samples_has_every_line() {
    let latency = counters([(100, 50), (200, 25), (1500, 20), (1_100_000, 5)]);
    let requests = counters([(400, 1), (500, 2), (750, 1)]);
    let totals = Totals {
        runtime: Duration::from_micros(1_003_000),
        requests: 100,
        bytes: 84_000,
        errors: SocketErrors {
            connect: 1,
            read: 2,
            write: 3,
            timeout: 4,
        },
        statuses_bad: 7,
    };
    let line = "-t 4 -c 10 -d 90 --latency -C 14 http://a/";
    // Mean (5000 + 5000 + 30000 + 5500000) / 100; the five of 1.1 s are more than one deviation away.
    let expected = "\
Running 2m test @ http://a/
  4 threads and 10 connections, 14 requests/connection
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    55.40ms  240.86ms   1.10s    95.00%
    Req/Sec   537.50    149.30   750.00     75.00%
  Latency Distribution
     50%  200.00us
     75%    1.50ms
     90%    1.50ms
     99%    1.10s 
  100 requests in 1.00s, 82.03KB read
  Socket errors: connect 1, read 2, write 3, timeout 4
  Non-2xx or 3xx responses: 7
Requests/sec:     99.70
Transfer/sec:     81.79KB
";
    assert_eq!(report(line, &latency, &requests, &totals), expected);
}

#[test]
fn a_run_without_an_answer_has_the_columns_that_wrk_prints_then() {
    let none = counters([]);
    let totals = Totals {
        runtime: Duration::from_secs(1),
        requests: 0,
        bytes: 0,
        errors: SocketErrors::default(),
        statuses_bad: 0,
    };
    let expected = "\
Running 1s test @ http://a/
  1 threads and 1 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     0.00us    0.00us   0.00us    -nan%
    Req/Sec     0.00      0.00     0.00      -nan%
  Latency Distribution
     50%    0.00us
     75%    0.00us
     90%    0.00us
     99%    0.00us
  0 requests in 1.00s, 0.00B read
Requests/sec:      0.00
Transfer/sec:       0.00B
";
    let found = report("-t1 -c1 -d1 -L http://a/", &none, &none, &totals);
    assert_eq!(found, expected);
}
