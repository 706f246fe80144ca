//! Payload that a link sends from where it lies: whatever becomes of that, the peer gets the same bytes, or a reset.

use super::pair::{Pair, SERVER_V4, pattern, read, write};
use crate::link::{ExternalSent, Link, LinkProperties};
use crate::memory_link::MemoryLink;
use crate::socket::SocketError;
use alloc::vec::Vec;

/// A server whose device cuts.
fn pair() -> Pair {
    let server = MemoryLink::new(LinkProperties {
        segment_bytes_max: 65_535,
        completes_checksums: true,
        ..*MemoryLink::ethernet(2).properties()
    });
    Pair::over(MemoryLink::ethernet(1), server, |_| {})
}

#[test]
fn the_peer_gets_the_same_bytes_whether_they_are_copied_or_not() {
    let mut in_place = Vec::new();
    for external in [ExternalSent::Yes, ExternalSent::Unable] {
        let mut pair = pair();
        let listener = pair.listen(SERVER_V4);
        let (client, server) = pair.connect(listener, SERVER_V4);
        pair.server_link.external = external;
        let bytes = pattern(1_000_000, 1);
        // In two pieces, so that the queue's ring begins anywhere.
        let mut got = Vec::new();
        for piece in bytes.chunks(300_000) {
            write(&mut pair.server, server, piece);
            while pair.turn() {
                got.extend(read(&mut pair.client, &mut pair.client_link, client));
            }
        }
        assert!(got == bytes, "{external:?}");
        in_place.push(pair.server.counters().segments_in_place);
    }
    assert!(in_place[0] > 10 && in_place[1] == 0, "{in_place:?}");
}

#[test]
fn a_segment_without_room_is_sent_once_there_is_some() {
    let mut pair = pair();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    let bytes = pattern(200_000, 1);
    write(&mut pair.server, server, &bytes);
    let mut got = Vec::new();
    for turn in 0..1000 {
        // Every other turn there is none.
        pair.server_link.external = match turn % 2 {
            0 => ExternalSent::Full,
            _ => ExternalSent::Yes,
        };
        pair.turn();
        got.extend(read(&mut pair.client, &mut pair.client_link, client));
    }
    assert!(got == bytes, "{} bytes came", got.len());
    assert!(pair.server.counters().segments_in_place > 2);
}

#[test]
fn a_segment_whose_bytes_are_gone_resets_its_connection_alone() {
    let mut pair = pair();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    let (other, other_server) = pair.connect(listener, SERVER_V4);
    pair.server_link.external = ExternalSent::Vanished;
    write(&mut pair.server, server, &pattern(100_000, 1));
    write(&mut pair.server, other_server, b"short");
    pair.run();
    assert_eq!(
        pair.server.readable(server).error,
        Some(SocketError::Vanished)
    );
    assert_eq!(pair.client.readable(client).error, Some(SocketError::Reset));
    let got = read(&mut pair.client, &mut pair.client_link, other);
    assert_eq!(got, b"short");
}
