//! Requests and large bodies, in either direction.

use crate::card::{Card, IGB, VIRTIO_NET, VIRTIO_NET_WITH_SPARE_QUEUES};
use crate::serving::{Serving, serve};
use std::fs;

/// Small answers and large ones in turn, and a large body that comes back, over several connections; each byte is compared.
pub(crate) fn exchange(serving: &Serving<'_>) {
    let large = serving.large();
    let mut clients: Vec<_> = (0..3).map(|_| serving.connect()).collect();
    for client in &mut clients {
        for _ in 0..3 {
            assert_eq!(client.get("/").unwrap().content, b"hello\n");
        }
        assert!(client.get("/large.bin").unwrap().content == large);
        let len = large.len();
        let head = format!("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: {len}\r\n\r\n");
        client.send(head.as_bytes()).unwrap();
        client.send(&large).unwrap();
        assert!(client.answer().unwrap().content == large);
    }
}

/// How many segments came to the client's kernel behind later ones.
fn out_of_order(serving: &Serving<'_>) -> u64 {
    let read = || fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let text = serving.wire.at_client(read);
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut names = lines.next().unwrap().split_whitespace();
    let place = names.position(|name| name == "TCPOFOQueue").unwrap();
    let mut values = lines.next().unwrap().split_whitespace();
    values.nth(place).unwrap().parse().unwrap()
}

/// Long segments leave by a packet socket, and frames by the ring: with copies in the order of the calls, without copies
/// when the driver gets to it. A small frame may overtake a long segment then, which costs order and no bytes.
fn check(card: Card) {
    serve(card, |serving| {
        exchange(serving);
        let counters = serving.status("--counters");
        // Those that are 0 are not shown.
        let seen = |name: &str| {
            let mut lines = counters.lines().map(str::split_whitespace);
            let value = lines.find_map(|mut words| (words.next()? == name).then(|| words.next()));
            value.flatten().unwrap_or("0")
        };
        println!(
            "{card}: {} segments left whole, {} came behind later ones, {} were sent again",
            seen("stack.link_segments"),
            out_of_order(serving),
            seen("stack.segments_retransmitted"),
        );
    });
}

#[test]
fn requests_and_large_bodies_pass_whole_over_virtio_net() {
    check(VIRTIO_NET);
}

#[test]
fn requests_and_large_bodies_pass_whole_over_igb() {
    check(IGB);
}

/// `igb_xsk_wakeup` does not reach the interrupt that receives then.
#[test]
fn requests_and_large_bodies_pass_whole_over_igb_with_an_interrupt_for_each_direction() {
    check(IGB.with_queues(2));
}

/// The driver adds queues while it has a program, which the stack can't have.
#[test]
fn spare_queues_of_virtio_net_are_told_with_the_command_that_takes_them() {
    // With four of six in use no queue is spare once the program is attached.
    for queues in [2, 4] {
        serve(
            VIRTIO_NET_WITH_SPARE_QUEUES.with_queues(queues),
            |serving| {
                let told = "its driver uses 2 queues more";
                assert!(serving.has_said(told), "{}", serving.site.error_log());
                assert!(serving.has_said("ethtool -L mill0 combined 6"));
            },
        );
    }
    serve(VIRTIO_NET_WITH_SPARE_QUEUES.with_queues(6), |serving| {
        assert!(!serving.has_said("queues more"));
        exchange(serving);
    });
}
