//! A listener that is about to be closed.

use super::pair::{Pair, SERVER_V4, turn_of};

#[test]
fn a_draining_listener_completes_handshakes_and_begins_none_until_it_is_kept() {
    let mut pair = Pair::new();
    let listener = pair.listen(SERVER_V4);
    let target = SERVER_V4.parse().unwrap();
    // The server knows the client's Ethernet address.
    pair.connect(listener, SERVER_V4);

    let begun = pair.client.connect(target, None, true, 7).unwrap();
    turn_of(&mut pair.client, &mut pair.client_link, pair.now);
    pair.client_link.carry(&mut pair.server_link);
    turn_of(&mut pair.server, &mut pair.server_link, pair.now);
    assert_eq!(pair.server.half_open(listener), 1);
    pair.server.set_listener_draining(listener, true);
    let late = pair.client.connect(target, None, true, 7).unwrap();
    pair.run();
    assert!(pair.client.is_established(begun));
    assert!(pair.server.accept(listener, 9).is_some());
    assert!(!pair.client.is_established(late));
    assert_eq!(pair.server.half_open(listener), 0);

    pair.server.set_listener_draining(listener, false);
    pair.connect(listener, SERVER_V4);
}

#[test]
fn another_listener_of_the_port_takes_what_a_draining_one_does_not() {
    let mut pair = Pair::new();
    let of_address = pair.listen(SERVER_V4);
    let of_all = pair.listen("0.0.0.0:80");
    pair.connect(of_address, SERVER_V4);
    pair.server.set_listener_draining(of_address, true);
    pair.connect(of_all, SERVER_V4);
    pair.server.set_listener_draining(of_address, false);
    pair.connect(of_address, SERVER_V4);
}
