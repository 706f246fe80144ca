//! Links that go down and up while they are in use: connections wait, and go on.

use crate::card::{Card, IGB, INTERFACE, VIRTIO_NET, ip};
use crate::monitor::set_link;
use crate::server::wait_for;
use crate::serving::serve;

fn check(card: Card) {
    serve(card, |serving| {
        let mut client = serving.connect();
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        let cable: &dyn Fn(bool) = &|is_on| set_link(card.outside, is_on);
        let administrator: &dyn Fn(bool) = &|is_on| {
            let state = if is_on { "up" } else { "down" };
            ip(&format!("link set {INTERFACE} {state}"));
        };
        let ways = [
            (cable, "mill0: the interface has no carrier"),
            (administrator, "mill0: the interface is down"),
        ];
        for (count, (set, why)) in (1..).zip(ways) {
            set(false);
            wait_for(|| serving.has_said(why));
            client
                .send(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
                .unwrap();
            set(true);
            let again = "mill0: the interface is up again";
            wait_for(|| serving.site.error_log().matches(again).count() == count);
            assert_eq!(client.answer().unwrap().content, b"hello\n", "{why}");
            let mut other = serving.connect();
            assert!(other.get("/large.bin").unwrap().content == serving.large());
        }
    });
}

#[test]
fn connections_outlive_a_link_of_virtio_net_that_is_down_for_a_moment() {
    check(VIRTIO_NET);
}

#[test]
fn connections_outlive_a_link_of_igb_that_is_down_for_a_moment() {
    check(IGB);
}
