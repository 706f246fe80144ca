//! The chart is well-formed, stays in its frame, and describes the run.

use super::*;
use crate::native::measures::Measures;
use crate::native::sample_results::{options, prepared, results, with_outcome};

fn picture(line: &str) -> String {
    let mut picture = String::new();
    with_outcome(line, |outcome| picture = emit(outcome));
    picture
}

/// The visible texts, in order.
fn texts(picture: &str) -> Vec<String> {
    let texts = picture.split("<text ").skip(1).filter_map(|rest| {
        let (_, content) = rest.split_once('>')?;
        let (content, _) = content.split_once("</text>")?;
        Some(
            content
                .replace("<tspan class=\"value\">", "")
                .replace("</tspan>", ""),
        )
    });
    texts.collect()
}

fn paths(picture: &str) -> Vec<&str> {
    let parts = picture.split(" d=\"").skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

/// Every number of a path.
fn coordinates(path: &str) -> Vec<f64> {
    path.split(['M', 'L', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap())
        .collect()
}

#[track_caller]
fn check_texts(line: &str, expected: &[&str]) {
    let texts = texts(&picture(line)).join(" | ");
    assert_eq!(texts, expected.join(" | "));
}

#[test]
fn an_open_loop_shows_both_latencies_and_the_rate_that_was_asked_for() {
    check_texts(
        "-r 500 --warm-up 3s http://a/?b&c",
        &[
            "GET http://a/?b&amp;c",
            "10 connections, 1 thread, open loop at 500/s, 2.00 s after 3 s of warm-up",
            "500/s answered, 3 failed; verdict: invalid",
            "0 | 5 ms | 10 ms | 15 ms | 20 ms | 25 ms | 30 ms",
            "99.9 % | 99 % | 90 % | 50 % | 0 %",
            "percentile of requests",
            "max 30.0 ms | p99 29.9 ms | p50 5.00 ms",
            "latency from when the request was due | from when it was sent",
            "0 | 500",
            "answered per second | asked for",
            "0 | 5 ms",
            "0 | 0.2 | 0.4 | 0.6 | 0.8 | 1 | 1.2 | 1.4 | 1.6 | 1.8 | 2",
            "p99 of each interval",
            "seconds since the end of the warm-up",
        ],
    );
    assert_eq!(paths(&picture("-r 500 http://a/")).len(), 4);
}

#[test]
fn a_closed_loop_shows_one_latency() {
    check_texts(
        "http://a/",
        &[
            "GET http://a/",
            "10 connections, 1 thread, closed loop, 2.00 s",
            "500/s answered, 3 failed; verdict: invalid",
            "0 | 2 ms | 4 ms | 6 ms | 8 ms | 10 ms",
            "99.9 % | 99 % | 90 % | 50 % | 0 %",
            "percentile of requests",
            "max 10.0 ms | p99 9.90 ms | p50 5.00 ms",
            "latency from when the request was sent (closed loop)",
            "0 | 500",
            "answered per second",
            "0 | 5 ms",
            "0 | 0.2 | 0.4 | 0.6 | 0.8 | 1 | 1.2 | 1.4 | 1.6 | 1.8 | 2",
            "p99 of each interval",
            "seconds since the beginning",
        ],
    );
    assert_eq!(paths(&picture("http://a/")).len(), 3);
}

#[test]
fn curves_rise_and_stay_in_their_frame() {
    let picture = picture("-r 500 http://a/");
    for path in &paths(&picture)[..2] {
        let points = coordinates(path);
        let mut last = (UPPER.left, UPPER.bottom);
        for point in points.chunks(2) {
            let (x, y) = (point[0], point[1]);
            assert!((UPPER.left..=UPPER.right).contains(&x), "{x}");
            assert!((UPPER.top..=UPPER.bottom).contains(&y), "{y}");
            assert!(x >= last.0 && y <= last.1, "{last:?} {x} {y}");
            last = (x, y);
        }
        let to_end = (last.0 - UPPER.right).abs();
        assert!(to_end < 0.1, "it ends with the last request");
        assert!(points.len() < 2 * 2000, "no more points than pixels");
    }
}

#[test]
fn every_element_that_begins_ends() {
    let picture = picture("-r 500 http://a/");
    for name in ["svg", "text", "title", "desc", "style", "tspan"] {
        let begins = picture.matches(&format!("<{name}>")).count()
            + picture.matches(&format!("<{name} ")).count();
        let ends = picture.matches(&format!("</{name}>")).count();
        assert_eq!(begins, ends, "{name}");
    }
    for name in ["line", "circle", "path", "rect"] {
        for element in picture.split(&format!("<{name} ")).skip(1) {
            let inside = element.split('>').next().unwrap();
            assert!(inside.ends_with('/'), "{name}: {inside}");
        }
    }
}

#[test]
fn without_an_answer_the_chart_says_so() {
    let options = options("http://a/");
    let prepared = prepared(&options);
    let mut results = results(false);
    results.measures = Measures::new(false);
    let picture = emit(&Outcome::new(&options, &prepared, &results));
    assert_eq!(texts(&picture).last().unwrap(), "no request was answered");
    assert!(paths(&picture).is_empty());
}

#[test]
fn a_run_of_one_interval_has_no_course_in_time() {
    let options = options("http://a/");
    let prepared = prepared(&options);
    let mut results = results(false);
    results.periods.truncate(1);
    let picture = emit(&Outcome::new(&options, &prepared, &results));
    assert_eq!(paths(&picture).len(), 1);
    assert!(picture.contains("viewBox=\"0 0 960 534\""));
}

#[test]
fn a_long_title_is_cut_and_kept_whole_beside_the_picture() {
    let path = "0123456789".repeat(20);
    let picture = picture(&format!("http://a/{path}"));
    let cut = &texts(&picture)[0];
    assert_eq!(cut.chars().count(), TITLE_CHARS);
    assert!(cut.ends_with('…'));
    assert!(picture.contains(&format!("<title>GET http://a/{path}</title>")));
}

#[test]
fn no_letter_breaks_the_document() {
    assert_eq!(escape("a<b>&\"c\"\u{1b}\u{0}é"), "a&lt;b&gt;&amp;\"c\"é");
}
