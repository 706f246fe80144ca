//! Peers of a host whose process was killed.

use super::pair::{Pair, SERVER_V4, read, write};
use crate::host::farewell::OTHER_TIMESTAMP;
use crate::host::tables::NextNumbers;
use crate::socket::SocketError;
use core::time::Duration;

/// The server's connections are noted, then its process is killed, and the next one tells the peers.
fn follow(pair: &mut Pair, noted: &[NextNumbers], timestamp: u32) {
    let heir = Pair::new();
    pair.server = heir.server;
    pair.server_link.arrived.clear();
    for numbers in noted {
        pair.server.tell_ended(numbers, timestamp);
    }
    pair.run();
}

/// The probe has this timestamp, which is older than the connection's last one or not.
fn check_probe(timestamp: u32) {
    let mut pair = Pair::new();
    pair.server.list_young(true);
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    let mut noted = alloc::vec::Vec::new();
    pair.server.note_young(|_, numbers| noted.extend(numbers));
    // A part of an answer, with which the client's request is acknowledged: it has nothing to send again.
    write(&mut pair.client, client, b"request");
    pair.run();
    write(&mut pair.server, server, b"half of an ans");
    pair.run();
    pair.wait(Duration::from_millis(500));
    read(&mut pair.client, &mut pair.client_link, client);
    follow(&mut pair, &noted, timestamp);
    assert_eq!(pair.client.readable(client).error, Some(SocketError::Reset));
}

#[test]
fn a_peer_that_has_got_more_since_its_connection_was_noted_hears_of_the_end() {
    check_probe(0);
    check_probe(OTHER_TIMESTAMP);
}

#[test]
fn a_peer_that_has_got_nothing_since_then_hears_of_it_by_the_first_segment() {
    let mut pair = Pair::new();
    pair.server.list_young(true);
    let listener = pair.listen(SERVER_V4);
    let (client, _) = pair.connect(listener, SERVER_V4);
    let mut noted = alloc::vec::Vec::new();
    pair.server.note_young(|_, numbers| noted.extend(numbers));
    follow(&mut pair, &noted, 0);
    assert_eq!(pair.client.readable(client).error, Some(SocketError::Reset));
}
