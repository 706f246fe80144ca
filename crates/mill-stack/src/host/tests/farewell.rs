//! Peers of a host whose process was killed.

use super::pair::{Pair, SERVER_V4, read, write};
use crate::host::tables::NextNumbers;
use crate::socket::SocketError;
use core::time::Duration;

/// The server's connections are noted, then its process is killed, and the next one tells the peers.
fn follow(pair: &mut Pair, noted: &[NextNumbers]) {
    let heir = Pair::new();
    pair.server = heir.server;
    pair.server_link.arrived.clear();
    for numbers in noted {
        pair.server.tell_ended(numbers);
    }
    pair.run();
}

#[test]
fn a_peer_that_has_got_more_since_its_connection_was_noted_hears_of_the_end() {
    let mut pair = Pair::new();
    pair.server.list_young();
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    let mut noted = alloc::vec::Vec::new();
    pair.server.note_young(|_, numbers| noted.push(numbers));
    // A part of an answer, with which the client's request is acknowledged: it has nothing to send again.
    write(&mut pair.client, client, b"request");
    pair.run();
    write(&mut pair.server, server, b"half of an ans");
    pair.run();
    pair.wait(Duration::from_millis(500));
    read(&mut pair.client, &mut pair.client_link, client);
    follow(&mut pair, &noted);
    assert_eq!(pair.client.readable(client).error, Some(SocketError::Reset));
}

#[test]
fn a_peer_that_has_got_nothing_since_then_hears_of_it_by_the_first_segment() {
    let mut pair = Pair::new();
    pair.server.list_young();
    let listener = pair.listen(SERVER_V4);
    let (client, _) = pair.connect(listener, SERVER_V4);
    let mut noted = alloc::vec::Vec::new();
    pair.server.note_young(|_, numbers| noted.push(numbers));
    follow(&mut pair, &noted);
    assert_eq!(pair.client.readable(client).error, Some(SocketError::Reset));
}
