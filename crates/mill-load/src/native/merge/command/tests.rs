//! Files in, a table or a file out.

use super::*;
use crate::native::merge::tests::part;
use core::time::Duration;
use mill_metrics::Histogram;
use std::path::PathBuf;

/// A temporary folder of one test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("millstream-merge-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn results(&self, name: &str, results: &Results) -> String {
        let document = json!({ "schema": 1, "verdict": {}, "results": wire::emit(results) });
        self.write(name, &document.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run_main(arguments: &[&str]) -> (u8, String, String) {
    let arguments: Vec<Vec<u8>> = arguments
        .iter()
        .map(|word| word.as_bytes().to_vec())
        .collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = main(&arguments, &mut out, &mut err);
    (
        status,
        String::from_utf8(out).unwrap(),
        String::from_utf8(err).unwrap(),
    )
}

fn millis(millis: u64, count: usize) -> Results {
    part(&vec![Duration::from_millis(millis); count])
}

#[test]
fn two_files_become_a_table_and_a_file_that_can_be_merged_again() {
    let folder = Folder::new("table");
    let (a, b) = (
        folder.results("a.json", &millis(1, 98)),
        folder.results("b.json", &millis(100, 2)),
    );
    let sum = folder.0.join("sum.json");
    let sum = sum.to_str().unwrap();
    let (status, out, err) = run_main(&[&a, "--json", sum, &b]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(
        out.contains("100 answers in 2.00s from 2 parts, 50.0 a second; 0 failed, 0 unfinished"),
        "{out}"
    );
    let p99 = out.split("p99 ").last().unwrap();
    assert!(p99.starts_with("100.0") || p99.starts_with("99.9"), "{out}");
    let (status, out, _) = run_main(&[sum, &a, "--json=-"]);
    assert_eq!(status, 0);
    let again: Value = serde_json::from_str(&out).unwrap();
    let results = wire::parse(&again["results"]).unwrap();
    assert_eq!(results.measures.latency.count(), 198);
    assert_eq!((&again["schema"], again.get("verdict")), (&json!(1), None));
}

#[test]
fn files_that_cannot_be_merged_are_reported_and_change_the_status() {
    let folder = Folder::new("refused");
    let good = folder.results("good.json", &millis(1, 10));
    let mut open = millis(1, 10);
    open.measures.raw = Some(Histogram::new());
    let open = folder.results("open.json", &open);
    let text = folder.write("text.json", "hello");
    let other = folder.write("other.json", "{\"results\":{\"began\":[1,2]}}");
    let foreign = folder.write("foreign.json", "[1]");
    let check = |arguments: &[&str], expected: &str| {
        let (status, out, err) = run_main(arguments);
        assert_eq!((status, out.as_str()), (1, ""));
        assert!(err.contains(expected), "{err}");
    };
    check(&[], "name at least two files");
    check(&[&good], "name at least two files");
    check(&[&good, &text], "text.json: it is no JSON");
    check(&[&good, &other], "other.json: its results are damaged");
    check(&[&good, &foreign], "foreign.json: it is no document of");
    check(&[&good, &open], "some of the files are of an open loop");
    check(
        &[&good, "/nonexistent/file"],
        "/nonexistent/file: No such file",
    );
    check(&[&good, &good, "--json"], "--json needs");
    check(&[&good, &good, "--jason"], "--jason is not an option");
    check(
        &[&good, &good, "--json=/nonexistent/sum"],
        "--json /nonexistent/sum: ",
    );
}

#[test]
fn help_is_no_error() {
    let (status, out, err) = run_main(&["--help"]);
    assert!(status == 0 && err.is_empty() && out.starts_with("usage: millstream load merge"));
}
