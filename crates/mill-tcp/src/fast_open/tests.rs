//! RFC 7413 4.2.2, from the SYN on.

use super::*;
use crate::config::Config;
use crate::pair::{Draft, Pair, Peer, SERVER};
use crate::segment::Ecn;
use crate::time::Duration;
use mill_wire::tcp_option::{TcpOptions, Timestamps};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

/// The client's segment: `seq` counted from the number behind its SYN, `ack` from the one behind ours.
fn draft(pair: &Pair, flags: Flags, seq: u32, ack: u32) -> Draft {
    let syn = flags.has(Flags::SYN);
    Draft {
        seq: SeqNumber(1000) + seq - u32::from(syn),
        ack: pair.sides[SERVER].iss + 1 + ack,
        flags,
        window: 60_000,
        options: TcpOptions {
            mss: syn.then_some(1460),
            window_scale: syn.then_some(0),
            sack_permitted: syn,
            timestamps: Some(Timestamps { value: 5, echo: 0 }),
            ..TcpOptions::default()
        },
        payload: alloc::vec::Vec::new(),
        ecn: Ecn::NotCapable,
        merged: 1,
    }
}

/// A server that has accepted a SYN with a request, on a wire that leads nowhere.
fn accepted() -> Pair {
    let mut pair = Pair::new(&Config::default());
    pair.wire.lost = 1000;
    let syn = draft(&pair, Flags::SYN, 0, 0).with_payload(REQUEST);
    // Any connection gives `command` its environment.
    pair.open(SERVER);
    let iss = pair.sides[SERVER].iss;
    let (connection, arrived) = pair.command(SERVER, |_, env| {
        Connection::accept_fast_open(&syn.segment(), iss, 77, 1460, env)
    });
    assert_eq!(
        (arrived.deliver, arrived.events),
        (0..REQUEST.len(), Events::READABLE)
    );
    pair.sides[SERVER].peer = Peer::Open(connection);
    let bytes = u32::try_from(REQUEST.len()).unwrap();
    pair.command(SERVER, |connection, env| connection.consumed(bytes, env));
    pair
}

/// Or the client would send no larger ones than it takes.
#[test]
fn what_the_syn_ack_announces_does_not_depend_on_the_client() {
    let mut pair = Pair::new(&Config::default());
    pair.wire.lost = 1000;
    let mut syn = draft(&pair, Flags::SYN, 0, 0).with_payload(REQUEST);
    syn.options.mss = Some(600);
    pair.open(SERVER);
    let iss = pair.sides[SERVER].iss;
    let (connection, _) = pair.command(SERVER, |_, env| {
        Connection::accept_fast_open(&syn.segment(), iss, 77, 1460, env)
    });
    pair.sides[SERVER].peer = Peer::Open(connection);
    pair.run_for(Duration::from_millis(1_100));
    let sent = pair.sent_since(0, SERVER);
    assert!(sent.len() > 1, "it is repeated");
    assert!(sent.iter().all(|syn_ack| syn_ack.options.mss == Some(1460)));
}

/// RFC 9293 3.10.7.4, fifth, SYN-RECEIVED.
#[test]
fn another_acknowledgement_gets_a_reset() {
    for (ack, is_good) in [(8, true), (9, false)] {
        let mut pair = accepted();
        pair.write(SERVER, b"response");
        pair.flush();
        let draft = draft(&pair, Flags::ACK, 18, ack);
        let (_, sent) = pair.give(SERVER, &draft);
        assert_eq!(
            sent.iter().any(|segment| segment.flags == Flags::RST),
            !is_good
        );
    }
}

#[test]
fn syn_ack_and_data_are_repeated_until_they_are_given_up() {
    for has_data in [false, true] {
        let mut pair = accepted();
        if has_data {
            pair.write(SERVER, b"response");
        }
        pair.run_for(Duration::from_secs(200));
        let sent = pair.sent_since(0, SERVER);
        let syns = sent.iter().filter(|segment| segment.flags.has(Flags::SYN));
        let count = syns.count();
        assert!((6..=7).contains(&count), "{count} SYN-ACKs");
        assert!(pair.sides[SERVER].events.has_any(Events::TIMED_OUT));
        let data = sent.iter().filter(|segment| segment.len == 8).count();
        assert_eq!(data > 5, has_data);
    }
}

/// The client has not heard of our SYN.
#[test]
fn a_repeated_syn_gets_the_syn_ack_again() {
    let mut pair = accepted();
    pair.flush();
    for payload in [REQUEST, b""] {
        let syn = draft(&pair, Flags::SYN, 0, 0).with_payload(payload);
        let (arrived, sent) = pair.give(SERVER, &syn);
        assert_eq!(arrived.dropped, Some(SegmentDrop::Duplicate));
        assert_eq!((sent.len(), sent[0].flags), (1, Flags::SYN | Flags::ACK));
        assert_eq!(sent[0].ack, SeqNumber(1018));
    }
}

/// One request, one answer: the FIN goes with the response.
#[test]
fn a_server_may_answer_and_close_before_the_handshake_is_complete() {
    let mut pair = accepted();
    pair.write(SERVER, b"response");
    pair.close(SERVER);
    pair.flush();
    let sent = pair.sent_since(0, SERVER);
    assert!(sent[1].flags.has(Flags::FIN) && sent[1].len == 8);
    let ack = draft(&pair, Flags::ACK, 18, 9);
    let (arrived, _) = pair.give(SERVER, &ack);
    assert_eq!((arrived.acked, pair.state(SERVER)), (8, State::FinWait2));
    let fin = draft(&pair, Flags::ACK | Flags::FIN, 18, 9);
    let (arrived, sent) = pair.give(SERVER, &fin);
    assert!(arrived.events.has_any(Events::TIME_WAIT));
    assert_eq!(sent[0].ack, SeqNumber(1019));
}
