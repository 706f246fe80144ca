//! Requests before the end of a handshake.

use super::authority::{client, server_with, suites};
use super::{PIECES, Served, pattern, read_all};
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::Write;
use std::sync::Arc;
use std::task::Poll;

fn connect(config: &Arc<ClientConfig>) -> ClientConnection {
    let name = ServerName::try_from("a.example").unwrap();
    ClientConnection::new(Arc::clone(config), name).unwrap()
}

/// Clients with early data; for TLS 1.3 alone.
fn clients() -> impl Iterator<Item = Arc<ClientConfig>> {
    let all = suites().into_iter();
    all.filter(|(suite, _)| suite.tls13().is_some())
        .map(|(suite, version)| {
            let mut config = client(suite, version);
            config.enable_early_data = true;
            Arc::new(config)
        })
}

/// Moves what the client has to say to the server.
fn send(client: &mut ClientConnection, served: &Served) {
    let mut sent = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut sent).unwrap();
    }
    served.to_server.bytes.borrow_mut().extend(sent);
}

/// Moves what the server has said to the client; returns its plaintext.
fn receive(client: &mut ClientConnection, served: &Served) -> Vec<u8> {
    let mut all = Vec::new();
    let received = std::mem::take(&mut *served.to_client.bytes.borrow_mut());
    let mut rest = received.as_slice();
    while !rest.is_empty() {
        client.read_tls(&mut rest).unwrap();
        client.process_new_packets().unwrap();
        all.extend(read_all(client));
    }
    all
}

#[test]
fn a_request_of_the_first_flight_is_answered_in_the_first_answer() {
    for config in clients() {
        for piece in PIECES {
            let settings = server_with(true);
            let served = Served::with(settings.clone(), usize::MAX);
            served.run(&mut connect(&config)).unwrap();

            let served = Served::with(settings, piece);
            let mut peer = connect(&config);
            let question = pattern(10_000);
            peer.early_data().unwrap().write_all(&question).unwrap();
            send(&mut peer, &served);
            // Pieces do not end with records: more than one turn may be needed.
            assert!(matches!(
                served.transport.poll_readable(question.len()),
                Poll::Ready(Ok(_))
            ));
            assert!(!served.transport.is_handshaking());
            let facts = served.transport.tls_facts().unwrap();
            assert!(facts.is_early.get() && facts.is_resumed);
            assert_eq!(facts.server_name.as_deref(), Some("a.example"));
            let left = served.transport.read(|bytes| {
                assert!(*bytes == question);
                (9_000, bytes.len() - 9_000)
            });
            assert_eq!(left, 1_000);
            let answer = pattern(40_000);
            served.transport.write(Payload::Copy(&answer));
            assert!(receive(&mut peer, &served) == answer, "{piece}");
            assert!(peer.is_early_data_accepted());

            // The rest of the request comes behind the handshake, and is read with what was left.
            let more = pattern(30_000);
            peer.writer().write_all(&more).unwrap();
            send(&mut peer, &served);
            assert!(matches!(
                served.transport.poll_readable(31_000),
                Poll::Ready(Ok(_))
            ));
            assert!(!facts.is_early.get());
            served.transport.read(|bytes| {
                assert!(bytes.get(..1_000) == question.get(9_000..));
                assert!(bytes.get(1_000..) == Some(more.as_slice()));
                (bytes.len(), ())
            });
            served.transport.write(Payload::Copy(&answer));
            assert!(receive(&mut peer, &served) == answer, "{piece}");
        }
    }
}

#[test]
fn a_session_serves_for_early_data_once() {
    let config = clients().next().unwrap();
    let settings = server_with(true);
    let served = Served::with(settings.clone(), usize::MAX);
    served.run(&mut connect(&config)).unwrap();
    let served = Served::with(settings.clone(), usize::MAX);
    let mut peer = connect(&config);
    peer.early_data().unwrap().write_all(b"once").unwrap();
    let mut flight = Vec::new();
    peer.write_tls(&mut flight).unwrap();
    while peer.wants_write() {
        peer.write_tls(&mut flight).unwrap();
    }
    served.to_server.bytes.borrow_mut().extend(&flight);
    assert_eq!(served.received(), b"once");
    // The same bytes again.
    let again = Served::with(settings, usize::MAX);
    again.to_server.bytes.borrow_mut().extend(&flight);
    assert_eq!(again.received(), b"");
    assert!(again.transport.is_handshaking());
}

#[test]
fn early_data_that_is_not_taken_is_passed_over() {
    let config = clients().next().unwrap();
    let settings = server_with(true);
    let served = Served::with(settings, usize::MAX);
    served.run(&mut connect(&config)).unwrap();
    // Another server, which knows none of those sessions.
    for other in [server_with(true), server_with(false)] {
        let served = Served::with(other, 7);
        let mut peer = connect(&config);
        if let Some(mut early) = peer.early_data() {
            early.write_all(b"early").unwrap();
        }
        served.run(&mut peer).unwrap();
        assert!(!peer.is_early_data_accepted());
        peer.writer().write_all(b"late").unwrap();
        send(&mut peer, &served);
        assert_eq!(served.received(), b"late");
        assert!(!served.transport.tls_facts().unwrap().is_early.get());
    }
}

#[test]
fn an_end_before_the_end_of_the_handshake_is_told() {
    let config = clients().next().unwrap();
    let settings = server_with(true);
    let served = Served::with(settings.clone(), usize::MAX);
    served.run(&mut connect(&config)).unwrap();
    let served = Served::with(settings, usize::MAX);
    let mut peer = connect(&config);
    peer.early_data().unwrap().write_all(b"question").unwrap();
    send(&mut peer, &served);
    assert_eq!(served.received(), b"question");
    served.transport.write(Payload::Copy(b"answer"));
    served.transport.shutdown();
    assert_eq!(receive(&mut peer, &served), b"answer");
    assert!(peer.process_new_packets().unwrap().peer_has_closed());
    send(&mut peer, &served);
    assert!(served.transport.is_early());
    assert!(served.received().is_empty() && !served.transport.is_early());
    assert!(served.to_client.bytes.borrow().is_empty());
}

#[test]
fn an_answer_goes_out_between_two_parts_of_the_last_flight() {
    let config = clients().next().unwrap();
    let settings = server_with(true);
    let served = Served::with(settings.clone(), usize::MAX);
    served.run(&mut connect(&config)).unwrap();
    let served = Served::with(settings, 1);
    let mut peer = connect(&config);
    peer.early_data().unwrap().write_all(b"question").unwrap();
    send(&mut peer, &served);
    assert_eq!(served.received(), b"question");
    assert!(receive(&mut peer, &served).is_empty());
    let mut last = Vec::new();
    while peer.wants_write() {
        peer.write_tls(&mut last).unwrap();
    }
    let end = last.split_off(last.len() - 1);
    served.to_server.bytes.borrow_mut().extend(last);
    assert!(served.received().is_empty());
    served.transport.write(Payload::Copy(b"answer"));
    served.to_server.bytes.borrow_mut().extend(end);
    assert!(served.transport.poll_drained(0).is_ready());
    assert_eq!(receive(&mut peer, &served), b"answer");
}
