//! Queries and their results.

use serde_json::Value;
use std::process::{Command, Output};

/// `millstream status` with these words, run to its end.
pub(crate) fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millstream"))
        .arg("status")
        .args(words)
        .output()
        .unwrap()
}

/// Its text, and its exit code.
pub(crate) fn text(words: &[&str]) -> (String, Option<i32>) {
    let output = run(words);
    let mut text = String::from_utf8(output.stdout).unwrap();
    text.push_str(&String::from_utf8(output.stderr).unwrap());
    (text, output.status.code())
}

/// The same as JSON. The server may have a worker that does not answer in time, on a busy machine.
pub(crate) fn json(words: &[&str]) -> Value {
    let mut all = words.to_vec();
    all.push("--json");
    let output = run(&all);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A figure, by its path: `total.server.requests`.
pub(crate) fn figure(status: &Value, way: &str) -> u64 {
    let found = way.split('.').fold(status, |value, name| &value[name]);
    found.as_u64().unwrap_or_else(|| panic!("no figure {way}"))
}

/// The rows of a table, of all workers.
pub(crate) fn rows<'a>(status: &'a Value, table: &'a str) -> Vec<&'a Value> {
    let parts = status["parts"].as_array().into_iter().flatten();
    let rows = parts.filter_map(move |part| part[table].as_array());
    rows.flatten().collect()
}

/// Checks sums of the stack's figures.
pub(crate) fn assert_consistent(status: &Value) {
    let stack = |name: &str| figure(status, &format!("total.stack.{name}"));
    let (received, handled) = (stack("frames_received"), stack("frames_handled"));
    let figures = status["total"]["stack"].as_object().unwrap();
    let late = [
        "device_full",
        "unresolved",
        "no_route",
        "rate_limit",
        "fragment_timeout",
    ];
    let dropped = figures.iter().filter_map(|(name, count)| {
        let reason = name.strip_prefix("dropped_")?;
        (!late.contains(&reason)).then(|| count.as_u64().unwrap())
    });
    let dropped: u64 = dropped.sum();
    assert_eq!(received, handled + dropped, "{figures:?}");
    assert_eq!(received, stack("link_received"), "{figures:?}");
    assert_eq!(
        stack("frames_transmitted"),
        stack("link_transmitted"),
        "{figures:?}"
    );
    let lost = stack("link_dropped") + stack("xdp_dropped") + stack("xdp_ring_full");
    assert_eq!(stack("steering_redirected"), received + lost, "{figures:?}");
}
