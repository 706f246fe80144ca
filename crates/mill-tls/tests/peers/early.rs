//! Requests before the end of a handshake.

use super::authority::{client, early_client, rustls_server, server_with, suites};
use super::pipe::{Pipe, Wire};
use super::{PIECES, Served, pattern, read_all};
use mill_runtime::payload::Payload;
use mill_runtime::stream::Stream;
use mill_tls::client_context::ClientContext;
use mill_tls::facts::{EarlyData, TlsFacts};
use mill_tls::transport::Transport;
use mill_tls::worker::TlsWorker;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use std::io::{Read, Write};
use std::rc::Rc;
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

/// Has a client of ours ask a server of rustls, which takes early data or not, and answers; what of the question came early,
/// all of it, and what was agreed on.
fn ask(
    config: &Arc<ServerConfig>,
    context: &ClientContext,
    (question, piece): (&[u8], usize),
) -> (Vec<u8>, Vec<u8>, Rc<TlsFacts>) {
    let (to_server, to_client) = (Rc::<Wire>::default(), Rc::<Wire>::default());
    let pipe = Pipe::new(&to_client, &to_server, piece);
    let (settings, name) = context.for_server(b"a.example", false);
    let ours = Transport::client(pipe, settings, name, TlsWorker::new());
    ours.begin_tls_with(question);
    let mut peer = ServerConnection::new(Arc::clone(config)).unwrap();
    let (mut early, mut all) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let _ = ours.poll_drained(0);
        let _ = ours.poll_readable(1);
        let sent = std::mem::take(&mut *to_server.bytes.borrow_mut());
        let mut rest = sent.as_slice();
        while !rest.is_empty() {
            peer.read_tls(&mut rest).unwrap();
            peer.process_new_packets().unwrap();
            if let Some(mut data) = peer.early_data() {
                let _ = data.read_to_end(&mut early);
            }
            let _ = peer.reader().read_to_end(&mut all);
        }
        let mut answer = Vec::new();
        while peer.wants_write() {
            peer.write_tls(&mut answer).unwrap();
        }
        to_client.bytes.borrow_mut().extend(answer);
    }
    all.splice(..0, early.iter().copied());
    (early, all, ours.tls_facts().unwrap())
}

#[test]
fn a_client_of_ours_sends_early_what_the_session_allows_and_the_rest_behind_the_handshake() {
    let (suite, _) = suites().remove(0);
    for (allowed, piece) in [(20_000, 1500), (20_000, usize::MAX), (100_000, 1)] {
        let mut config = ServerConfig::clone(&rustls_server(suite));
        config.max_early_data_size = allowed;
        let (config, context) = (Arc::new(config), early_client());
        for len in [4, 1_000, 19_999, 20_000, 20_001, 40_000] {
            let question = pattern(len);
            // The first one has no session; each gets tickets for the next ones.
            let (_, all, _) = ask(&config, &context, (&question, piece));
            assert!(all == question);
            let (early, all, facts) = ask(&config, &context, (&question, piece));
            assert_eq!(early.len(), len.min(allowed as usize), "{len} {piece}");
            assert!(all == question, "{len} {piece}");
            assert_eq!(facts.early_data, EarlyData::Taken);
            assert!(facts.is_resumed && facts.tickets.get() > 0);
        }
    }
}

#[test]
fn a_client_of_ours_sends_again_what_the_server_has_refused() {
    let (suite, _) = suites().remove(0);
    let mut config = ServerConfig::clone(&rustls_server(suite));
    config.max_early_data_size = 20_000;
    let (knows, context) = (Arc::new(config), early_client());
    // Servers that know none of the first one's sessions.
    let mut config = ServerConfig::clone(&rustls_server(suite));
    config.max_early_data_size = 20_000;
    for other in [Arc::new(config), rustls_server(suite)] {
        let question = pattern(1_000);
        ask(&knows, &context, (&question, usize::MAX));
        let (early, all, facts) = ask(&other, &context, (&question, 1500));
        assert_eq!((early.len(), all == question), (0, true));
        assert_eq!(
            (facts.early_data, facts.is_resumed),
            (EarlyData::Refused, false)
        );
    }
}
