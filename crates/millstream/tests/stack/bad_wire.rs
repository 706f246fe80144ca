//! Packets that are lost, reordered, duplicated and corrupted: every byte arrives, in time.

use crate::linux;
use crate::namespace::in_namespace;
use crate::ours::{Ours, Transfer};
use std::net::{SocketAddr, TcpListener};

fn check(host: &str, own: &str, wire: &str) {
    let transfer = Transfer {
        bytes: 1_000_000,
        seed: 3,
    };
    let prefix_len = if host.contains(':') { 64 } else { 24 };
    let text = format!("tap:mill0,address={own}/{prefix_len},host={host}/{prefix_len},{wire}");
    println!("{text}");
    in_namespace(|| {
        let any = if host.contains(':') {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        let listener = TcpListener::bind(any).unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = SocketAddr::new(host.parse().unwrap(), port);
        let answering = std::thread::spawn(move || linux::answer(&listener, transfer));
        let ours = Ours::start(&text, transfer, vec![target]);
        let asked = linux::ask(SocketAddr::new(own.parse().unwrap(), 80), transfer, |_| {});
        assert_eq!(asked, Ok(()), "{text}");
        assert_eq!(ours.outcome(), Ok(()), "{text}");
        assert_eq!(ours.outcome(), Ok(()), "{text}");
        assert_eq!(answering.join().unwrap(), Ok(()), "{text}");
    });
}

#[test]
fn one_packet_of_a_hundred_is_lost() {
    check("10.77.0.1", "10.77.0.2", "loss=1%,seed=1");
    check("fd00::1", "fd00::2", "loss=1%,seed=2");
    check("10.77.0.1", "10.77.0.2", "loss=1%,seed=3,sack=off");
    check("10.77.0.1", "10.77.0.2", "loss=1%,seed=4,timestamps=off");
}

#[test]
fn one_packet_of_twenty_is_lost() {
    check("10.77.0.1", "10.77.0.2", "loss=5%,seed=5");
    check("fd00::1", "fd00::2", "loss=5%,seed=6,congestion=reno");
    check("10.77.0.1", "10.77.0.2", "loss=5%,seed=9,congestion=bbr");
}

#[test]
fn packets_overtake_each_other_and_come_twice() {
    check("10.77.0.1", "10.77.0.2", "reorder=5%,duplicate=5%,seed=7");
    check(
        "10.77.0.1",
        "10.77.0.2",
        "reorder=5%,duplicate=5%,seed=10,congestion=bbr",
    );
    check(
        "fd00::1",
        "fd00::2",
        "reorder=5%,duplicate=5%,seed=8,sack=off",
    );
}

#[test]
fn bits_are_turned_over() {
    check("10.77.0.1", "10.77.0.2", "corrupt=1%,seed=9");
    check("fd00::1", "fd00::2", "corrupt=1%,seed=10");
}

#[test]
fn all_of_it_at_once() {
    for seed in 20..25 {
        let wire = format!("loss=1%,reorder=1%,duplicate=1%,corrupt=0.2%,seed={seed}");
        check("10.77.0.1", "10.77.0.2", &wire);
    }
}
