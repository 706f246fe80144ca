//! iperf3, at both sides and in both directions.

use super::{Peer, have, wait_until_served};
use crate::namespace::text_of;
use crate::run::{Accelerated, on_stack};
use crate::server::wait_for;
use crate::topology::{FAR_ADDRESS, HOSTS, between, is_steered, kernel_connections};
use mill_sys::signal::Signal;

const PORT: u16 = 5201;

/// To the server and from it, over one connection and over four at a time; and both at once.
const CASES: [&[&str]; 5] = [
    &["-n30M"],
    &["-n30M", "-R"],
    &["-n30M", "-P4"],
    &["-n30M", "-P4", "-R"],
    &["-t1", "--bidir"],
];

/// Runs iperf3 as a client, in all ways.
fn check(host: &str, run: &dyn Fn(&[&str]) -> String) {
    for case in CASES {
        let words = [&["iperf3", "-J", "-c", host], case].concat();
        let mut report = String::new();
        // The server closes its listener between two tests, for a millisecond or where it is interrupted for longer.
        wait_for(|| {
            report = run(&words);
            !report.contains("\"connected\":\t[]")
        });
        let received = report.split("\"sum_received\":").nth(1);
        let bytes = received.and_then(|rest| rest.split("\"bytes\":").nth(1));
        let bytes = bytes.and_then(|rest| rest.split(',').next());
        let bytes = bytes.unwrap_or_else(|| panic!("{case:?}: {report}"));
        let bytes: u64 = bytes.trim().parse().unwrap();
        // What is on its way at the end does not count: on a busy machine most of it is.
        assert!(bytes > 100_000, "{case:?}: {report}");
    }
}

#[test]
fn iperf3_transfers_in_both_directions_as_server_and_as_client() {
    if !have(&["iperf3"]) {
        return;
    }
    between(1500, |topology| {
        let server = Accelerated::start(&["iperf3", "-s"]);
        drop(wait_until_served(topology, PORT));
        check(HOSTS[0], &|words| {
            topology.at_client(|| text_of(words[0], &words[1..]))
        });
        let open = wait_until_served(topology, PORT);
        assert_eq!(kernel_connections(PORT), "");
        drop(open);
        // It calls its end by a signal an error.
        assert_eq!(server.end(Signal::Terminate).code(), Some(1));

        let _peer = Peer::start(topology, &["iperf3", "-s"]);
        let listens = || text_of("ss", &["-Htln", "sport = :5201"]);
        topology.at_client(|| wait_for(|| !listens().is_empty()));
        check(FAR_ADDRESS, &on_stack);
        assert_eq!(text_of("ss", &["-Htan", "dport = :5201"]), "");
        wait_for(|| !is_steered());
    });
}
