//! Connections that have begun since they were noted last.

use super::pair::{Pair, SERVER_V4};
use alloc::vec::Vec;

/// The ports of the peers of those that are noted.
fn noted(pair: &mut Pair) -> Vec<u16> {
    let mut ports = Vec::new();
    pair.server.note_young(|_, numbers| {
        ports.extend(numbers.map(|numbers| numbers.flow.remote_port));
    });
    ports
}

#[test]
fn a_connection_is_noted_once_as_it_begins() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    pair.connect(listener, SERVER_V4);
    assert_eq!(noted(&mut pair), [], "it was not asked for");

    pair.server.list_young(true);
    let (client, server) = pair.connect(listener, SERVER_V4);
    let port = pair.client.local(client).unwrap().port();
    assert_eq!(noted(&mut pair), [port]);
    assert_eq!(noted(&mut pair), []);
    pair.server.abort(server);
    pair.run();
    assert_eq!(noted(&mut pair), []);
}

#[test]
fn nothing_stays_noted_of_a_connection_that_goes_to_another_host() {
    let mut pair = Pair::new();
    pair.server.list_young(true);
    let listener = pair.listen(SERVER_V4);
    let target = SERVER_V4.parse().unwrap();
    pair.client.connect(target, None, true, 7).unwrap();
    pair.run();
    let mut slots = Vec::new();
    let mut note = |pair: &mut Pair| {
        pair.server
            .note_young(|slot, numbers| slots.push((slot, numbers.is_some())));
        core::mem::take(&mut slots)
    };
    assert_eq!(note(&mut pair), [(0, true)]);
    assert_eq!(pair.server.give_waiting(listener).len(), 1);
    assert_eq!(note(&mut pair), [(0, false)]);
}
