//! Settings of ethtool(8) that are changed while a server has the card.

use crate::card::{Card, IGB, INTERFACE, VIRTIO_NET};
use crate::namespace::{output_of, text_of};
use crate::serving::{Serving, serve};

/// A download during which something happens to the card.
fn during_a_download(serving: &Serving<'_>, act: impl FnOnce()) {
    let mut client = serving.connect();
    client
        .send(b"GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n")
        .unwrap();
    let (status, len) = client.head().unwrap();
    assert_eq!(status, 200);
    act();
    assert!(client.content(len).unwrap() == serving.large());
    assert_eq!(client.get("/").unwrap().content, b"hello\n");
    assert_eq!(serving.connect().get("/").unwrap().content, b"hello\n");
}

/// The kernel refuses to take queues away from sockets, or the driver to change any with a program.
fn check_queues(card: Card) {
    serve(card, |serving| {
        during_a_download(serving, || {
            let output = output_of("ethtool", &["-L", INTERFACE, "combined", "1"]);
            assert!(!output.status.success(), "{output:?}");
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            println!("{card}: ethtool -L: {}", why.trim().replace('\n', "; "));
        });
    });
}

/// The driver is reset: frames are lost and sent again.
fn check_rings(card: Card) {
    serve(card, |serving| {
        for size in ["128", "256"] {
            during_a_download(serving, || {
                text_of("ethtool", &["-G", INTERFACE, "rx", size]);
            });
        }
    });
}

#[test]
fn queues_of_virtio_net_stay_while_it_is_served() {
    check_queues(VIRTIO_NET);
}

#[test]
fn queues_of_igb_stay_while_it_is_served() {
    check_queues(IGB);
}

#[test]
fn a_download_outlives_a_change_of_the_rings_of_virtio_net() {
    check_rings(VIRTIO_NET);
}

#[test]
fn a_download_outlives_a_change_of_the_rings_of_igb() {
    check_rings(IGB);
}
