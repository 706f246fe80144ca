//! Programs whose system calls no library sees.

use crate::namespace::{has, output_of};
use crate::run::{BINARY, complaint};
use crate::server::{Server, Site};
use crate::topology::{FAR_ADDRESS, STACK, Topology, between, is_steered};
use std::process::{Command, Output, Stdio};

/// Written in Go, and linked by C's linker in Debian.
const PEBBLE: &str = "/usr/bin/pebble";

/// Linked statically in one of Debian's packages, and dynamically in another.
const BUSYBOX: &str = "/usr/bin/busybox";

/// Whether there is a program that names no dynamic linker.
fn is_static(path: &str) -> bool {
    let bytes = std::fs::read(path).unwrap_or_default();
    let head = bytes.get(..4096).unwrap_or_default();
    !head.is_empty() && !head.windows(8).any(|part| part == b"ld-linux")
}

#[test]
fn go_programs_are_refused_also_where_they_have_a_dynamic_linker() {
    if !has(PEBBLE) {
        println!("not tested: there is no {PEBBLE}");
        return;
    }
    between(1500, |_| {
        let found = complaint(&["--stack", STACK, "--", PEBBLE, "-help"]);
        assert!(found.contains("is a Go program"), "{found}");
        assert!(!is_steered());
        let words = ["run", "--stack", STACK, "--force", PEBBLE, "-help"];
        check_forced(&output_of(BINARY, &words), "is a Go program");
    });
}

/// A program that cannot have a stack has run, and its user was told.
fn check_forced(output: &Output, why: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains(why), "{errors}");
    let told = "it runs on the kernel's network stack";
    assert_eq!(errors.matches(told).count(), 1, "{errors}");
    assert!(!is_steered());
}

/// What a static program fetches from a server at the clients' side, by this command line in front of it.
fn fetched_behind(topology: &Topology, mut command: Command) -> Output {
    let target = Site::new();
    let server = topology.at_client(|| Server::directory(&target.path(""), &["--listen", "*"]));
    let url = format!("http://{FAR_ADDRESS}/");
    command.args([BUSYBOX, "wget", "-qO-", &url]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    drop(server);
    output
}

#[test]
fn static_programs_run_on_the_kernels_stack_where_that_is_asked_for() {
    if !is_static(BUSYBOX) {
        println!("not tested: there is no static {BUSYBOX}");
        return;
    }
    between(1500, |topology| {
        let refused = complaint(&["--stack", STACK, "--", BUSYBOX, "true"]);
        assert!(refused.contains("linked statically"), "{refused}");
        let site = Site::new();
        let onload = site.path("onload");
        std::os::unix::fs::symlink(BINARY, &onload).unwrap();
        let mut run = Command::new(BINARY);
        run.args(["run", "--stack", STACK, "--force", "--"]);
        let mut as_onload = Command::new(&onload);
        as_onload.arg("--force").env("MILLSTREAM_STACK", STACK);
        for command in [run, as_onload] {
            let output = fetched_behind(topology, command);
            check_forced(&output, "linked statically");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n");
        }
    });
}
