//! Connections that have received only, moved.

use crate::config::Config;
use crate::pair::{CLIENT, Pair, SERVER, pattern};
use crate::time::Duration;

/// The server's connection once it has so much text, and the peer's FIN if that was asked for.
fn received(config: &Config, text: &[u8], is_finished: bool) -> Pair {
    let mut pair = Pair::new(config);
    pair.sides[SERVER].reads = false;
    pair.connect();
    pair.run_for(Duration::from_millis(50));
    pair.write(CLIENT, text);
    if is_finished {
        pair.command(CLIENT, |connection, env| connection.shutdown(env));
    }
    pair.run_for(Duration::from_secs(1));
    pair
}

#[test]
fn a_connection_goes_on_where_it_was() {
    let plain = Config {
        timestamps: false,
        window_scaling: false,
        sack: false,
        ..Config::default()
    };
    for config in [Config::default(), plain] {
        for (len, is_finished) in [
            (0, false),
            (0, true),
            (1, false),
            (5000, true),
            (60_000, false),
        ] {
            let text = pattern(len);
            let mut pair = received(&config, &text, is_finished);
            let (found, state) = pair.command(SERVER, |connection, env| {
                let unread = connection.unread_bytes();
                assert_eq!(unread as usize, len);
                (connection.migrate(unread, env).unwrap(), connection.state())
            });
            let resumed = pair.command(SERVER, |connection, env| {
                let mut resumed = found.resume(env).unwrap();
                let options = found.options(env);
                let mut taken = 0;
                let empty = text.is_empty().then_some(&[][..]);
                for part in text.chunks(7000).chain(empty) {
                    let is_last = taken + part.len() == len;
                    let offset = u32::try_from(taken).unwrap();
                    let segment = found.segment(&options, offset, part, is_last);
                    let arrived = resumed.on_segment(&segment, env);
                    assert_eq!(arrived.dropped, None);
                    assert_eq!(part.get(arrived.deliver).unwrap(), part);
                    taken += part.len();
                }
                assert_eq!(resumed.rcv.nxt(), connection.rcv.nxt());
                assert_eq!(resumed.rcv.adv(), connection.rcv.adv());
                assert_eq!(resumed.snd.wnd(), connection.snd.wnd());
                assert_eq!(resumed.mss(), connection.mss());
                assert_eq!(resumed.shifts.rcv(), connection.shifts.rcv());
                resumed
            });
            assert_eq!(resumed.state(), state);
            assert_eq!(resumed.unread_bytes() as usize, len);
        }
    }
}

#[test]
fn a_connection_that_has_sent_something_or_is_over_stays() {
    let config = Config::default();
    let mut pair = received(&config, b"request", false);
    pair.write(SERVER, b"answer");
    pair.run_for(Duration::from_millis(1));
    let migrate = |pair: &mut Pair| {
        pair.command(SERVER, |connection, env| {
            connection.migrate(connection.unread_bytes(), env)
        })
    };
    let in_flight = pair.command(SERVER, |connection, _| connection.in_flight());
    assert!(in_flight > 0, "the answer is under way");
    assert_eq!(migrate(&mut pair), None);
    pair.command(SERVER, |connection, env| connection.shutdown(env));
    pair.run_for(Duration::from_secs(1));
    assert_eq!(migrate(&mut pair), None);
}
