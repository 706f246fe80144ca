//! Whole connections over the wire of `pair`.

use super::*;

fn transfer(pair: &mut Pair, up: &[u8], down: &[u8]) {
    pair.connect();
    pair.write(CLIENT, up);
    pair.write(SERVER, down);
    pair.run_until(Duration::from_secs(3600), |pair| {
        pair.state(SERVER) == State::Established
            && pair.sides[SERVER].received.len() == up.len()
            && pair.sides[CLIENT].received.len() == down.len()
    });
    assert!(pair.sides[SERVER].received == up, "other bytes arrived");
    assert!(pair.sides[CLIENT].received == down, "other bytes arrived");
    pair.close(CLIENT);
    pair.close(SERVER);
    pair.run_until(Duration::from_secs(3600), |pair| {
        matches!(pair.sides[CLIENT].peer, Peer::Gone)
            && matches!(pair.sides[SERVER].peer, Peer::Gone)
    });
}

#[test]
fn bytes_go_both_ways_and_the_connection_ends() {
    for len in [0, 1, 1448, 1449, 100_000] {
        let mut pair = Pair::new(&Config::default());
        transfer(&mut pair, &pattern(len), &pattern(len / 2));
    }
}

#[test]
fn a_bad_wire_changes_no_byte() {
    for seed in 1..40 {
        let mut pair = Pair::with_seed(&Config::default(), seed);
        pair.wire.lost = 20 * (seed % 4);
        pair.wire.late = 30 * (seed % 5);
        pair.wire.doubled = 10 * (seed % 3);
        transfer(&mut pair, &pattern(60_000), &pattern(120_000));
    }
}
