//! SYN floods (RFC 4987).

use crate::raw_peer::RawPeer;
use crate::target::Target;
use mill_stack::drop_reason::DropReason;
use mill_stack::socket::ListenOptions;
use mill_tcp::config::EcnMode;
use mill_wire::tcp::Flags;
use std::time::Duration;

const HALF_OPEN_MAX: u32 = 32;

fn target() -> Target {
    let options = ListenOptions {
        backlog: 64,
        ..ListenOptions::default()
    };
    Target::listening(&options, |config| {
        config.limits.half_open_max = HALF_OPEN_MAX
    })
}

/// Fills the SYN cache with handshakes that will not end.
fn fill(target: &mut Target) {
    for number in 0..HALF_OPEN_MAX {
        target.arrive(&RawPeer::new(500_000 + number).syn());
    }
    target.turn();
    target.take_seen();
    assert_eq!(target.host.usage().half_open, HALF_OPEN_MAX as usize);
    assert_eq!(target.host.counters().cookies_sent, 0);
}

/// Segments of a transfer to the host that are taken while each turn brings so many SYNs.
fn segments_taken(syns_per_turn: u32) -> u64 {
    let mut target = target();
    let mut peer = RawPeer::new(1);
    let socket = peer.connect(&mut target);
    let mut taken = 0;
    for turn in 0..200 {
        for syn in 0..syns_per_turn {
            let number = 10_000 + turn * syns_per_turn + syn;
            target.arrive(&RawPeer::new(number).syn());
        }
        for _ in 0..10 {
            peer.send(&mut target, Flags::ACK, &[7; 1000]);
        }
        target.turn();
        taken += target.read(socket).len() as u64 / 1000;
        target.take_seen();
        target.now = target.now + Duration::from_micros(100);
    }
    assert!(target.host.usage().half_open <= HALF_OPEN_MAX as usize);
    taken
}

#[test]
fn established_connections_keep_their_rate() {
    let (calm, flooded) = (segments_taken(0), segments_taken(200));
    assert_eq!(calm, 2000);
    assert!(flooded * 10 > calm * 9, "{flooded} of {calm} segments");
}

/// A SYN is doubled on its way, and the cache has room when the second one comes.
#[test]
fn a_cookie_completes_a_handshake_that_has_entered_the_cache_since() {
    let mut target = target();
    fill(&mut target);
    let mut peer = RawPeer::new(1);
    let syn = peer.syn();
    peer.begin(&mut target).expect("a cookie");
    assert_eq!(target.host.counters().cookies_sent, 1);
    // One of those that fill it resets what it began.
    let mut other = RawPeer::new(500_000);
    other.seq += 1;
    target.arrive(&other.segment(Flags::RST, &[]));
    target.arrive(&syn);
    target.turn();
    assert_eq!(target.host.usage().half_open, HALF_OPEN_MAX as usize);
    assert_eq!(target.host.counters().cookies_sent, 1);
    peer.send(&mut target, Flags::ACK, &[]);
    peer.send(&mut target, Flags::ACK | Flags::PSH, b"request");
    target.turn();
    let socket = target.accept().expect("the cookie is good");
    assert_eq!(target.read(socket), b"request");
    assert_eq!(target.host.usage().half_open, HALF_OPEN_MAX as usize - 1);
}

#[test]
fn new_connections_get_through_by_cookie_with_all_their_options() {
    let mut target = target();
    fill(&mut target);
    let mut peer = RawPeer::new(1).with_timestamps();
    let socket = peer.connect(&mut target);
    let counters = target.host.counters();
    assert_eq!((counters.cookies_sent, counters.cookies_taken), (1, 1));
    let info = target.host.info(socket).unwrap();
    assert!(info.timestamps && info.sack && !info.ecn);
    assert_eq!((info.snd_wind_shift, info.rcv_wind_shift > 0), (3, true));
    // The table's entry less the timestamps of every segment.
    assert_eq!(info.mss, 1460 - 12);
    peer.send(&mut target, Flags::ACK | Flags::PSH, b"request");
    target.turn();
    assert_eq!(target.read(socket), b"request");
    target.write(socket, b"response");
    target.turn();
    let answer: Vec<u8> = peer
        .take_seen(&mut target)
        .into_iter()
        .flat_map(|seen| seen.payload)
        .collect();
    assert_eq!(answer, b"response");
}

/// The echo is under the peer's control: it may claim options that were never offered.
#[test]
fn a_cookie_agrees_to_nothing_that_is_off() {
    for is_on in [true, false] {
        let mut target = Target::new(|config| {
            config.limits.half_open_max = HALF_OPEN_MAX;
            config.tcp.window_scaling = is_on;
            config.tcp.sack = is_on;
            config.tcp.ecn = if is_on { EcnMode::Accept } else { EcnMode::Off };
        });
        fill(&mut target);
        let mut peer = RawPeer::new(1).with_timestamps();
        peer.begin(&mut target).unwrap();
        let stamps = peer.timestamps.as_mut().unwrap();
        // A shift of 7, SACK and ECN.
        stamps.echo = (stamps.echo & !63) | 0x37;
        peer.send(&mut target, Flags::ACK, &[]);
        target.turn();
        let socket = target.accept().unwrap();
        let info = target.host.info(socket).unwrap();
        assert_eq!((info.sack, info.ecn), (is_on, is_on));
        assert_eq!(info.snd_wind_shift, if is_on { 7 } else { 0 });
    }
}

#[test]
fn a_cookie_has_no_timestamps_where_they_are_off() {
    let mut target = Target::new(|config| {
        config.limits.half_open_max = HALF_OPEN_MAX;
        config.tcp.timestamps = false;
    });
    fill(&mut target);
    let mut peer = RawPeer::new(1).with_timestamps();
    let socket = peer.connect(&mut target);
    let info = target.host.info(socket).unwrap();
    assert!(!info.timestamps && !info.sack && info.mss == 1460);
}

#[test]
fn an_acknowledgement_with_a_guessed_cookie_is_refused() {
    let mut target = target();
    fill(&mut target);
    let mut peer = RawPeer::new(1);
    peer.begin(&mut target).unwrap();
    for guess in 1..=100 {
        let mut forged = peer.segment(Flags::ACK, &[]);
        forged.header.ack += guess;
        target.arrive(&forged);
    }
    target.turn();
    assert_eq!(target.accept(), None);
    assert_eq!(target.host.counters().cookies_refused, 100);
    assert!(
        peer.take_seen(&mut target)
            .iter()
            .all(|seen| seen.is(Flags::RST))
    );
}

#[test]
fn a_cookie_is_of_no_use_after_two_minutes() {
    for (wait, is_taken) in [(60, true), (130, false)] {
        let mut target = target();
        fill(&mut target);
        let mut peer = RawPeer::new(1);
        peer.begin(&mut target).unwrap();
        target.wait(Duration::from_secs(wait));
        target.take_seen();
        // Another flood, so that cookies are in use still.
        fill_again(&mut target);
        peer.send(&mut target, Flags::ACK, &[]);
        target.turn();
        assert_eq!(target.accept().is_some(), is_taken, "{wait} s");
    }
}

fn fill_again(target: &mut Target) {
    for number in 0..=HALF_OPEN_MAX {
        target.arrive(&RawPeer::new(600_000 + number).syn());
    }
    target.turn();
    assert!(target.host.counters().cookies_sent > 1);
}

#[test]
fn a_flood_leaves_nothing_behind() {
    let mut target = target();
    for number in 0..5000 {
        target.arrive(&RawPeer::new(10_000 + number).syn());
        if number % 100 == 0 {
            target.turn();
        }
    }
    assert!(target.host.usage().half_open == HALF_OPEN_MAX as usize);
    target.wait(Duration::from_secs(64));
    target.assert_empty();
    assert_eq!(target.host.counters().dropped(DropReason::DeviceFull), 0);
}
