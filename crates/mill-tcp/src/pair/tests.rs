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

/// Either side closes or half closes at any time, over every wire, with readers that pause: what was written before
/// arrives, both sides learn of the end, and nothing is left.
#[test]
fn every_end_over_every_wire_is_an_end() {
    for seed in 1..120 {
        let mut random = Random::new(seed * 31);
        let mut below = |bound: u64| random.next() % bound;
        let config = Config {
            timestamps: below(4) > 0,
            sack: below(4) > 0,
            receive_buffer_bytes: 2000 << below(6),
            ..Config::default()
        };
        let mut pair = Pair::with_seed(&config, seed);
        pair.wire.lost = below(150);
        pair.wire.late = below(300);
        pair.wire.doubled = below(50);
        pair.wire.lateness = Duration::from_millis(1 + below(40));
        pair.connect();
        pair.run_until(Duration::from_secs(600), |pair| {
            pair.state(CLIENT) == State::Established && pair.state(SERVER) == State::Established
        });
        let texts =
            [below(30_000), below(30_000)].map(|len| pattern(usize::try_from(len).unwrap()));
        let order = if below(2) == 0 {
            [CLIENT, SERVER]
        } else {
            [SERVER, CLIENT]
        };
        for who in order {
            pair.sides[1 - who].reads = below(3) > 0;
            pair.write(who, &texts[who]);
            pair.run_for(Duration::from_millis(below(80)));
            pair.command(who, |connection, env| connection.shutdown(env));
            pair.run_for(Duration::from_millis(below(200)));
        }
        read_on(&mut pair);
        pair.run_until(Duration::from_secs(3600), |pair| {
            pair.sides
                .iter()
                .all(|side| matches!(side.peer, Peer::Gone))
        });
        for who in [CLIENT, SERVER] {
            let side = &pair.sides[who];
            assert!(side.received == texts[1 - who], "seed {seed}: other bytes");
            assert!(side.events.has_any(Events::FINISHED), "seed {seed}");
            assert!(
                side.events.has_any(Events::CLOSED) || side.events.has_any(Events::TIME_WAIT),
                "seed {seed}: {:?}",
                side.events
            );
        }
    }
}

/// The readers wake up, and consume what waits for them.
fn read_on(pair: &mut Pair) {
    for who in [CLIENT, SERVER] {
        pair.sides[who].reads = true;
        if matches!(pair.sides[who].peer, Peer::Open(_)) {
            pair.command(who, |connection, env| {
                connection.consumed(connection.unread_bytes(), env);
            });
        }
    }
}
