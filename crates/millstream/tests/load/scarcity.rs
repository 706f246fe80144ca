//! Too few descriptors, a closed output, nothing to connect to.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

const MILLSTREAM: &str = env!("CARGO_BIN_EXE_millstream");

/// `millstream load respond` on some port; ended when dropped.
struct Responder {
    child: Child,
    url: String,
}

impl Responder {
    fn start() -> Self {
        let mut child = Command::new(MILLSTREAM)
            .args(["load", "respond", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let url = line
            .split_whitespace()
            .find(|word| word.starts_with("http://"));
        Self {
            url: String::from(url.unwrap()),
            child,
        }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a generator with this limit of descriptors.
fn limited(descriptors: u32, arguments: &str) -> Output {
    let script = format!("ulimit -n {descriptors}; exec \"{MILLSTREAM}\" {arguments}");
    Command::new("/bin/sh")
        .args(["-c", &script])
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The number after `connect ` in wrk's line of errors.
fn failed_connects(report: &str) -> Option<u32> {
    let errors = report.split("Socket errors: connect ").nth(1)?;
    errors.split(',').next()?.parse().ok()
}

#[test]
fn connections_without_a_descriptor_are_counted_and_the_others_go_on() {
    let responder = Responder::start();
    for threads in [1, 3] {
        let arguments = format!("wrk -t {threads} -c 300 -d 1 {}", responder.url);
        let output = limited(64, &arguments);
        let report = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{report}");
        let failed = failed_connects(&report).unwrap();
        // Each thread has a table of its own, most of which is left for connections.
        let most = 300 - threads * 40;
        assert!((1..=most).contains(&failed), "{report}");
        assert!(!report.contains("  0 requests in"), "{report}");
    }
}

#[test]
fn too_few_descriptors_to_begin_with_are_reported() {
    let output = limited(4, "ab -n 1 http://127.0.0.1:1/");
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains("descriptor") || said.contains("open files"),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn output_to_a_closed_pipe_ends_quietly() {
    let responder = Responder::start();
    for tool in ["wrk -t 1 -c 2 -d 1", "ab -q -n 50"] {
        let mut child = Command::new(MILLSTREAM)
            .args(tool.split(' '))
            .arg(&responder.url)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stderr);
        assert!(
            output.status.code().is_some(),
            "{tool}: {:?}",
            output.status
        );
        assert!(!said.contains("panicked"), "{tool}: {said}");
        assert!(!said.contains("Broken pipe"), "{tool}: {said}");
    }
}

#[test]
fn an_unknown_name_is_reported() {
    for tool in [["wrk", "-d1"], ["ab", "-n1"], ["load", "-d1"]] {
        let output = Command::new(MILLSTREAM)
            .args(tool)
            .arg("http://host.invalid/")
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{tool:?}");
        assert!(said.contains("host.invalid"), "{tool:?}: {said}");
    }
}
