//! The document is read again with nothing lost, and has the main figures as plain numbers.

use super::*;
use crate::native::sample_results::{results, with_outcome};

fn document(line: &str) -> Value {
    let mut document = Value::Null;
    with_outcome(line, |outcome| document = emit(outcome));
    document
}

#[track_caller]
fn check(document: &Value, pointer: &str, expected: Value) {
    assert_eq!(document.pointer(pointer), Some(&expected), "{pointer}");
}

#[test]
fn results_are_read_again() {
    for (line, open_loop) in [("http://a/", false), ("-r 500 http://a/", true)] {
        let text = document(line).to_string();
        assert_eq!(parse(text.as_bytes()), Ok(results(open_loop)));
    }
}

#[test]
fn a_malformed_document_is_an_error_with_its_reason() {
    let damaged = r#"{"schema": 1, "results": {"began": 5}}"#;
    for (text, why) in [
        ("", "no JSON"),
        ("[1, 2]", "not a document of millstream load"),
        (r#"{"schema": 99}"#, "schema 99 is not known"),
        (damaged, "damaged"),
    ] {
        let refusal = parse(text.as_bytes()).unwrap_err();
        assert!(refusal.contains(why), "{text}: {refusal}");
    }
}

#[test]
fn plain_figures_need_no_decoder() {
    let document = document("-r 500 --max-p99 1ms --max-errors 1% -c 10 3=http://a/x http://a/y");
    for (pointer, expected) in [
        ("/schema", json!(1)),
        ("/status", json!(2)),
        ("/plan/loop", json!("open")),
        ("/plan/rate", json!(500.0)),
        ("/plan/arrivals", json!("uniform")),
        ("/plan/connections", json!(10)),
        ("/plan/requests_per_connection", Value::Null),
        ("/plan/urls/0", json!({"url": "http://a/x", "weight": 3.0})),
        ("/summary/started", json!(1007)),
        ("/summary/answered", json!(1000)),
        ("/summary/failed", json!(3)),
        ("/summary/unfinished", json!(4)),
        ("/summary/failures/timeout", json!(2)),
        ("/summary/failures/reset", json!(1)),
        ("/summary/answered_per_s", json!(500.0)),
        ("/summary/latency/count", json!(1000)),
        ("/summary/connect/count", json!(10)),
        ("/requirements/0/option", json!("--max-p99")),
        ("/requirements/0/held", json!(false)),
        ("/requirements/1/limit", json!("1 %")),
    ] {
        check(&document, pointer, expected);
    }
    let word = document.pointer("/verdict/word").and_then(Value::as_str);
    assert!(word.is_some_and(|word| !word.is_empty()));
}

#[test]
fn unmeasured_figures_are_null() {
    let document = document("http://a/");
    for pointer in [
        "/summary/raw",
        "/summary/lateness",
        "/plan/rate",
        "/plan/arrivals",
    ] {
        check(&document, pointer, Value::Null);
    }
    assert_eq!(figures(&Histogram::new()), Value::Null);
}
