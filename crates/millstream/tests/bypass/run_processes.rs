//! How processes of a program begin and end.

use crate::namespace::{has, output_of};
use crate::run::BINARY;
use crate::run_calls::{FAR, PYTHON, started};
use crate::topology::{STACK, between};

/// Ways in which a child of vfork(2) goes on, a line for each.
const VFORKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bypass/calls/vforks.py");

#[test]
fn a_parent_of_vfork_waits_until_its_child_runs_a_program_or_has_ended() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        let words = ["run", "--stack", STACK, "--", PYTHON, VFORKS];
        let output = output_of(BINARY, &words);
        let [said, errors] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        // What the child has said, its status, whether the parent's descriptors are as before, and its connection.
        let ways = [
            "runs a program, run, 768",
            "ends, end, 1024",
            "runs no program, run, 1024",
            "is killed, kill, 9",
            "closes all, closed, 1024",
            "has a child, left, 1024",
        ];
        let lines = ["by name", "by number"]
            .into_iter()
            .flat_map(|name| ways.map(|way| format!("{name}, {way}, True, 3, 3b294\n")));
        // Each time a signal has come meanwhile, whose handler ran after that.
        let expected: String = lines.chain([String::from("12\n")]).collect();
        assert_eq!(said, expected, "{errors}");
    });
}
