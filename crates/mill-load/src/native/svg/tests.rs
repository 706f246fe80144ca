//! A picture that is well-formed, in its frame, and says what was measured.

use super::*;
use crate::native::sample_results::{options, prepared, results, with_outcome};

fn picture(line: &str) -> String {
    let mut picture = String::new();
    with_outcome(line, |outcome| picture = emit(outcome));
    picture
}

/// Every number of a path.
fn coordinates(path: &str) -> Vec<f64> {
    path.split(['M', 'L', ' '])
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap())
        .collect()
}

fn paths(picture: &str) -> Vec<&str> {
    let parts = picture.split(" d=\"").skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

#[test]
fn an_open_loop_has_both_curves_and_both_captions() {
    let picture = picture("-r 500 http://a/?b&c");
    assert_eq!(paths(&picture).len(), 2);
    for text in [
        "GET http://a/?b&amp;c</text>",
        "latency, from when the request was due",
        "raw, from when it was started",
        "99.9 %</text>",
        "p99 <tspan class=\"value\">29.9 ms</tspan>",
        "max <tspan class=\"value\">30.0 ms</tspan>",
        "open loop at 500/s, 2.00 s; 500/s answered",
    ] {
        assert!(picture.contains(text), "{text} is not in {picture}");
    }
}

#[test]
fn a_closed_loop_has_one_curve() {
    let picture = picture("http://a/");
    assert_eq!(paths(&picture).len(), 1);
    assert!(picture.contains("service time of a closed loop"));
}

#[test]
fn curves_rise_and_stay_in_their_frame() {
    for path in paths(&picture("-r 500 http://a/")) {
        let points = coordinates(path);
        let mut last = (LEFT, HEIGHT - BOTTOM);
        for point in points.chunks(2) {
            let (x, y) = (point[0], point[1]);
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{x}");
            assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{y}");
            assert!(x >= last.0 && y <= last.1, "{last:?} {x} {y}");
            last = (x, y);
        }
        assert!(
            (last.0 - (WIDTH - RIGHT)).abs() < 0.1,
            "it ends with the last request"
        );
        assert!(points.len() < 2 * 2000, "no more points than pixels");
    }
}

#[test]
fn every_element_that_begins_ends() {
    let picture = picture("-r 500 http://a/");
    for name in ["svg", "text", "title", "style", "tspan"] {
        let begins = picture.matches(&format!("<{name}>")).count()
            + picture.matches(&format!("<{name} ")).count();
        assert_eq!(
            begins,
            picture.matches(&format!("</{name}>")).count(),
            "{name}"
        );
    }
    for name in ["line", "circle", "path", "rect"] {
        for element in picture.split(&format!("<{name} ")).skip(1) {
            let inside = element.split('>').next().unwrap();
            assert!(inside.ends_with('/'), "{name}: {inside}");
        }
    }
}

#[test]
fn without_an_answer_it_says_so() {
    let options = options("http://a/");
    let prepared = prepared(&options);
    let mut results = results(false);
    results.measures = crate::native::measures::Measures::new(false);
    let picture = emit(&Outcome::new(&options, &prepared, &results));
    assert!(picture.contains("no request was answered"));
    assert!(paths(&picture).is_empty());
}
