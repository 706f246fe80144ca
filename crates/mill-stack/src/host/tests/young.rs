//! Connections that have begun since they were noted last.

use super::pair::{Pair, SERVER_V4, write};
use alloc::vec::Vec;

/// The ports of the peers of those that are noted.
fn noted(pair: &mut Pair) -> Vec<u16> {
    let mut ports = Vec::new();
    pair.server
        .note_young(|_, numbers| ports.push(numbers.flow.remote_port));
    ports
}

#[test]
fn a_connection_is_noted_once_as_it_begins_unless_all_of_it_was_sent() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    pair.connect(listener, SERVER_V4);
    assert_eq!(noted(&mut pair), [], "it was not asked for");

    pair.server.list_young();
    let (client, server) = pair.connect(listener, SERVER_V4);
    let port = pair.client.local(client).unwrap().port();
    assert_eq!(noted(&mut pair), [port]);
    assert_eq!(noted(&mut pair), []);
    pair.server.abort(server);
    pair.run();

    let (_, finished) = pair.connect(listener, SERVER_V4);
    write(&mut pair.server, finished, b"answer");
    pair.server.shutdown(finished);
    pair.run();
    let (client, waits) = pair.connect(listener, SERVER_V4);
    write(&mut pair.server, waits, b"ans");
    pair.run();
    let port = pair.client.local(client).unwrap().port();
    assert_eq!(noted(&mut pair), [port]);
}
