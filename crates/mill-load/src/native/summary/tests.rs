//! Whole summaries.

use super::*;
use crate::native::sample_results::with_outcome;

fn summary(line: &str) -> String {
    let mut text = String::new();
    with_outcome(line, |outcome| {
        text = emit(outcome, Style { colour: false })
    });
    text
}

#[track_caller]
fn check(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\nis not in\n{text}");
    }
}

#[test]
fn a_closed_loop_notes_the_limits_of_its_latency() {
    let text = summary("-c 10 http://a/x");
    let until_verdict = text.split("\nverdict").next().unwrap();
    assert_eq!(
        until_verdict,
        "\
GET http://a/x
10 connections, 1 thread, closed loop, 2.00 s

  rate        500/s
  answered    1,000 requests
  received    100 kB, 50.0 kB/s (10.0 kB of content)
  connections 10 opened, 5.00/s, at most 10 at a time

                    p50        p90        p99      p99.9        max       mean
  connect       85.1 µs    85.1 µs    85.1 µs    85.1 µs    85.1 µs    85.0 µs
  first byte    2.50 ms    4.50 ms    4.95 ms    5.00 ms    5.00 ms    2.50 ms
  total         5.00 ms    9.00 ms    9.90 ms    10.0 ms    10.0 ms    5.01 ms

  total is service time, not response time: a closed loop asks less often while
  the server is slow, so it hides waiting. --rate shows what users would wait.

  1,007 started = 1,000 answered + 3 failed + 4 unfinished at the end
  1 failed (reset): connection lost: reset by the peer
  2 failed (timeout): no answer in time
  statuses: 990 × 2xx, 10 × 4xx
  answers differ: 990 × 200 with 10 B, 10 × 404 with 10 B
  client CPU: 20.0 µs per request (4.00 µs user, 16.0 µs system); busy 1 %
  server CPU: 30.0 µs per request (10.0 µs user, 20.0 µs system); nginx (process
  4711), its busiest thread 97 %
"
    );
}

#[test]
fn an_open_loop_shows_both_latencies_and_the_gap() {
    let text = summary("-c 10 -r 500 --arrivals poisson --warm-up 1s http://a/");
    check(
        &text,
        &[
            "open loop at 500/s (Poisson), 2.00 s after 1 s of warm-up",
            "rate        500/s of 500/s offered (100 %)",
            "raw           5.00 ms    9.00 ms    9.90 ms    10.0 ms    10.0 ms",
            "latency       5.00 ms    9.00 ms    29.9 ms    30.0 ms    30.0 ms",
            "The gap at p99, 20.0 ms, is time in",
        ],
    );
}

#[test]
fn requirements_are_shown_with_both_figures() {
    check(
        &summary("--max-p99 5ms --max-errors 20 http://a/"),
        &[
            "  missed  --max-p99 5.00 ms: p99 9.90 ms\n",
            "  held    --max-errors 20: errors 13\n",
        ],
    );
}

#[test]
fn the_verdict_comes_with_its_reasons() {
    let text = summary("http://a/");
    let verdict = text.split("\nverdict: ").nth(1).unwrap();
    let word = verdict.lines().next().unwrap();
    assert!(!word.is_empty());
    assert!(
        text.lines().all(|line| line.chars().count() <= COLUMNS),
        "{text}"
    );
}

#[test]
fn several_targets_and_lives_have_their_words() {
    check(
        &summary("--requests-per-connection 4 --think 5ms http://a/ http://a/b"),
        &[
            "2 targets\n",
            "closed loop with 5 ms to think, 4 requests per connection",
        ],
    );
    check(
        &summary("--no-keepalive http://a/"),
        &["one request per connection"],
    );
}

#[test]
fn colours_are_around_words_and_change_none() {
    let line = "--max-p99 5ms http://a/";
    with_outcome(line, |outcome| {
        let mut text = emit(outcome, Style { colour: true });
        assert!(text.contains("\x1b[1m"));
        for code in ["0", "1", "2", "31", "32", "33"] {
            text = text.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(text, summary(line));
    });
}
