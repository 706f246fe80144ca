//! The tables of times, compared with ab's for such figures.

use super::super::arguments::parse;
use super::super::statistics::measure;
use super::*;

fn options(line: &str) -> Options {
    let arguments: Vec<Vec<u8>> = line.split(' ').map(Vec::from).collect();
    *parse(&arguments, &|_| Ok(Vec::new())).outcome.unwrap()
}

fn outcome<'a>(options: &'a Options, rows: &'a mut [Row]) -> Outcome<'a> {
    let times = measure(rows);
    let done = rows.len() as u64;
    Outcome {
        options,
        server: b"nginx/1.15.5",
        secured: None,
        document_len: 2649,
        taken: Duration::from_micros(23_819_760),
        counts: Counts {
            done,
            ..Counts::default()
        },
        bytes_received: 2_328_000_195,
        content_bytes: 2_119_200_000,
        bytes_sent: 0,
        times,
        rows,
        unserved: None,
    }
}

fn text(outcome: &Outcome<'_>) -> String {
    let mut out = Vec::new();
    emit(outcome, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn row(connect_ms: u64, total_ms: u64) -> Row {
    Row {
        started_us: 0,
        connect_us: connect_ms * 1000,
        total_us: total_ms * 1000,
        wait_us: (total_ms - connect_ms) * 1000,
    }
}

/// The layout of a published run: 800 000 requests by 100 connections for a file of 2649 bytes.
#[test]
fn a_published_report_has_this_layout() {
    let options = options("-n 800000 -c 100 http://www.example.com/logo.svg");
    // 700 of a thousand took 3 ms, 200 took 4, 95 took 5 and five took 25.
    let shares = [(1, 3, 700), (1, 4, 200), (1, 5, 95), (6, 25, 5)];
    let mut rows = Vec::new();
    for (connect, total, share) in shares {
        rows.extend(std::iter::repeat_n(row(connect, total), share * 800));
    }
    let expected = "

Server Software:        nginx/1.15.5
Server Hostname:        www.example.com
Server Port:            80

Document Path:          /logo.svg
Document Length:        2649 bytes

Concurrency Level:      100
Time taken for tests:   23.820 seconds
Complete requests:      800000
Failed requests:        0
Total transferred:      2328000195 bytes
HTML transferred:       2119200000 bytes
Requests per second:    33585.56 [#/sec] (mean)
Time per request:       2.977 [ms] (mean)
Time per request:       0.030 [ms] (mean, across all concurrent requests)
Transfer rate:          95443.35 [Kbytes/sec] received

Connection Times (ms)
              min  mean[+/-sd] median   max
Connect:        1    1   0.4      1       6
Processing:     2    2   1.3      2      19
Waiting:        2    2   1.3      2      19
Total:          3    4   1.7      3      25

Percentage of the requests served within a certain time (ms)
  50%      3
  66%      3
  75%      4
  80%      4
  90%      5
  95%      5
  98%      5
  99%      5
 100%     25 (longest request)
";
    assert_eq!(text(&outcome(&options, &mut rows)), expected);
}

#[test]
fn tables_are_left_out_when_asked_for() {
    let options = options("-n 2 -d -S a/");
    let mut rows = [row(1, 3), row(12, 1234)];
    let text = text(&outcome(&options, &mut rows));
    let expected = "\nConnection Times (ms)
              min   avg   max
Connect:        1     7   12
Processing:     2   612 1222
Waiting:        2   612 1222
Total:          3   619 1234
";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_run_without_an_answer_has_no_times_and_no_rates() {
    let options = options("-k -l a/");
    let mut none = outcome(&options, &mut []);
    none.server = b"";
    none.bytes_received = 0;
    none.content_bytes = 0;
    let expected = "

Server Software:        
Server Hostname:        a
Server Port:            80

Document Path:          /
Document Length:        Variable

Concurrency Level:      1
Time taken for tests:   23.820 seconds
Complete requests:      0
Failed requests:        0
Keep-Alive requests:    0
Total transferred:      0 bytes
HTML transferred:       0 bytes
";
    assert_eq!(text(&none), expected);
}

#[test]
fn ab_warns_when_median_and_mean_are_apart() {
    let said = |mean_ms: u64, median_ms: u64, deviation_ms: f64| {
        let spread = Spread {
            mean: mean_ms * 1000,
            median: median_ms * 1000,
            deviation: deviation_ms * 1000.0,
            ..Spread::default()
        };
        let mut out = Vec::new();
        sane("the total time", &spread, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let error = "ERROR: The median and mean for the total time are more than twice the standard
       deviation apart. These results are NOT reliable.\n";
    let warning =
        "WARNING: The median and mean for the total time are not within a normal deviation
        These results are probably not that reliable.\n";
    assert_eq!(said(5, 2, 1.4), error);
    assert_eq!(said(2, 5, 1.5), warning);
    assert_eq!(said(5, 2, 2.9), warning);
    assert_eq!(said(5, 2, 3.0), "");
    assert_eq!(said(2, 2, 0.0), "");
}

#[test]
fn our_own_line_appears_when_rounding_or_abs_median_hide_something() {
    let options = options("-n 3 a/");
    let said = |rows: &mut [Row]| warning(&outcome(&options, rows));
    let fast = said(&mut [row(0, 1), row(0, 2), row(0, 3)]).unwrap();
    assert_eq!(
        fast,
        "millstream: ab rounds to whole milliseconds; the total times are \
         min 1.000, mean 2.000, median 2.000, 99% 3.000, max 3.000 ms"
    );
    let odd = said(&mut [row(0, 20), row(0, 30), row(0, 90)]).unwrap();
    assert!(odd.ends_with("is 30.000 ms"), "{odd}");
    assert_eq!(said(&mut [row(0, 30), row(0, 30), row(0, 30)]), None);
    assert_eq!(said(&mut []), None);
    let mut refused = outcome(&options, &mut []);
    refused.counts.done = 3;
    let line = warning(&refused).unwrap();
    assert!(line.starts_with("millstream: 3 requests failed"), "{line}");
}
