//! Datagrams over devices that carry less than the loopback interface does at first, in network namespaces.

use crate::server::Kernel;
use mill_conformance::behaviours::datagrams;
use mill_sys::{interface, namespace};
use std::process::Command;

/// Runs a test on a thread whose loopback interface is its own; `prepare` changes that, or says what it lacks.
#[expect(
    clippy::print_stdout,
    reason = "says what was not tested, and why, where rights or programs are missing"
)]
fn on_own_loopback(prepare: fn() -> Result<(), String>, test: fn()) {
    let thread = std::thread::spawn(move || {
        let left = namespace::leave_network().map_err(|error| error.to_string());
        let prepared = left.and_then(|()| {
            interface::set_up("lo").unwrap();
            prepare()
        });
        match prepared {
            Ok(()) => test(),
            Err(error) => println!("not tested: {error}"),
        }
    });
    thread.join().unwrap();
}

/// The kernel does not cut by a length that the path does not carry.
#[test]
fn segments_that_are_longer_than_packets_arrive_as_separate_datagrams() {
    let narrow = || interface::set_mtu("lo", 900).map_err(|error| error.to_string());
    on_own_loopback(
        narrow,
        datagrams::a_segmented_send_arrives_as_separate_datagrams::<Kernel>,
    );
}

/// What waits in the queue of the device counts against the send buffer of its socket.
#[test]
fn a_sender_that_outruns_the_device_waits_for_room() {
    let slow = || {
        let arguments = "qdisc add dev lo root tbf rate 200mbit burst 64kb limit 10mb";
        let status = Command::new("tc")
            .args(arguments.split(' '))
            .status()
            .map_err(|error| format!("tc: {error}"))?;
        let is_slow = status.success().then_some(());
        is_slow.ok_or_else(|| format!("tc {arguments} fails"))
    };
    on_own_loopback(
        slow,
        datagrams::a_sender_that_outruns_the_network_waits_for_room::<Kernel>,
    );
}
