//! What `millstream run` says of the stack that a program gets.

use crate::namespace::{has, output_of};
use crate::run::BINARY;
use crate::run_calls::{FAR, PYTHON, started};
use crate::topology::{STACK, Topology, between, between_queues};

/// What a client says on standard error that was started with these options.
fn said(topology: &Topology, options: &[&str]) -> String {
    let _far = started(topology, FAR);
    let script =
        "import socket; s = socket.create_connection(('10.50.0.2', 5001)); print('connected')";
    let words = [
        &["run", "--stack", STACK],
        options,
        &["--", PYTHON, "-c", script],
    ]
    .concat();
    let output = output_of(BINARY, &words);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.stdout, b"connected\n", "{said}");
    said
}

#[test]
fn interface_queues_and_stacks_are_said_at_the_start() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    let four = "has stacks over af_xdp:mill0, one for each process; up to 4 of them at a time share its 4 queues\n";
    let own = "has a stack over mill0, with 0, 1, 2, 3 of its 4 partitions\n";
    between_queues([4, 4], |topology| {
        for (options, is_verbose) in [(&[][..], false), (&["--verbose"], true), (&["-v"], true)] {
            let said = said(topology, options);
            assert_eq!(said.matches(four).count(), 1, "{said}");
            assert_eq!(said.matches(own).count(), usize::from(is_verbose), "{said}");
        }
    });
    between(1500, |topology| {
        let said = said(topology, &[]);
        assert!(
            said.contains("; one of them at a time has its queue, and serves the others\n"),
            "{said}"
        );
    });
}
