//! Programs whose system calls no library sees.

use crate::namespace::has;
use crate::run::complaint;
use crate::topology::{STACK, between, is_steered};

/// Written in Go, and linked by C's linker in Debian.
const PEBBLE: &str = "/usr/bin/pebble";

#[test]
fn go_programs_are_refused_also_where_they_have_a_dynamic_linker() {
    if !has(PEBBLE) {
        println!("not tested: there is no {PEBBLE}");
        return;
    }
    between(1500, |_| {
        let found = complaint(&["--stack", STACK, "--", PEBBLE, "-version"]);
        assert!(found.contains("is a Go program"), "{found}");
        assert!(!is_steered());
    });
}
