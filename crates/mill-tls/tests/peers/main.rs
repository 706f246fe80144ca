//! Our records and handshakes against rustls' own, over streams that cut bytes into pieces.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod authority;
mod early;
mod pipe;

use authority::{Only, client, rustls_server, server, suites, wary_client};
use mill_runtime::payload::Payload;
use mill_runtime::stream::{Stream, StreamError, StreamOption};
use mill_tls::handshake::Fault;
use mill_tls::protection::{Opener, Sealer, Version};
use mill_tls::record::{ContentType, RecordHeader};
use mill_tls::server_context::ServerContext;
use mill_tls::transport::Transport;
use mill_tls::worker::TlsWorker;
use pipe::{Pipe, Wire};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Error, ServerConnection};
use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

const PIECES: [usize; 4] = [1, 7, 1500, usize::MAX];

/// Our server, and what reaches it and leaves it.
struct Served {
    to_server: Rc<Wire>,
    to_client: Rc<Wire>,
    transport: Transport<Pipe>,
}

impl Served {
    fn new(piece: usize) -> Self {
        Self::with(server(), piece)
    }

    fn with(settings: ServerContext, piece: usize) -> Self {
        let (to_server, to_client) = (Rc::<Wire>::default(), Rc::<Wire>::default());
        let pipe = Pipe::new(&to_server, &to_client, piece);
        let transport = Transport::server(pipe, Rc::new(Only(settings)), TlsWorker::new());
        transport.begin_tls();
        Self {
            to_server,
            to_client,
            transport,
        }
    }

    /// Moves bytes between both until the client has nothing to say.
    fn run(&self, client: &mut ClientConnection) -> Result<(), Error> {
        loop {
            let mut sent = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut sent).unwrap();
            }
            let is_quiet = sent.is_empty();
            self.to_server.bytes.borrow_mut().extend(sent);
            let _ = self.transport.poll_readable(1);
            let received = std::mem::take(&mut *self.to_client.bytes.borrow_mut());
            let mut rest = received.as_slice();
            while !rest.is_empty() {
                client.read_tls(&mut rest).unwrap();
                client.process_new_packets()?;
            }
            if is_quiet && received.is_empty() {
                return Ok(());
            }
        }
    }

    /// All plaintext that has arrived.
    fn received(&self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Poll::Ready(Ok(readable)) = self.transport.poll_readable(1) {
            if readable.unread == 0 {
                break;
            }
            all.extend(self.transport.read(|bytes| (bytes.len(), bytes.to_vec())));
        }
        all
    }
}

fn rustls_client(config: ClientConfig) -> ClientConnection {
    let name = ServerName::try_from("a.example").unwrap();
    ClientConnection::new(Arc::new(config), name).unwrap()
}

fn read_all(client: &mut ClientConnection) -> Vec<u8> {
    let mut all = Vec::new();
    // An error is "would block", or the end.
    let _ = client.reader().read_to_end(&mut all);
    all
}

/// Bytes that repeat only after 251.
fn pattern(len: usize) -> Vec<u8> {
    (0..=250_u8).cycle().take(len).collect()
}

#[test]
fn of_several_certificates_the_one_with_the_name_goes_out() {
    let names = ["a.example", "*.b.example", "c.example"];
    let (context, certificates) = authority::server_of_names(&names);
    let check = |asked_for: &'static str, expected: usize| {
        let served = Served::with(context.clone(), 1500);
        let (suite, version) = suites()[0];
        let name = ServerName::try_from(asked_for).unwrap();
        let mut peer = ClientConnection::new(Arc::new(client(suite, version)), name).unwrap();
        served.run(&mut peer).unwrap();
        let shown = peer.peer_certificates().unwrap();
        assert_eq!(shown[0].as_ref(), certificates[expected], "{asked_for}");
    };
    check("a.example", 0);
    check("x.b.example", 1);
    check("c.example", 2);
    // Without one the first goes out.
    check("d.example", 0);
    check("b.example", 0);
}

#[test]
fn servers_with_one_secret_open_each_other_s_tickets() {
    let (suite, version) = suites()[0];
    let resumes = |first: &[u8], second: &[u8]| {
        let config = Arc::new(client(suite, version));
        let kinds = [first, second].map(|secret| {
            let served = Served::with(authority::server_of_secret(secret), 1500);
            let name = ServerName::try_from("a.example").unwrap();
            let mut peer = ClientConnection::new(Arc::clone(&config), name).unwrap();
            served.run(&mut peer).unwrap();
            peer.handshake_kind().unwrap()
        });
        assert_ne!(kinds[0], rustls::HandshakeKind::Resumed);
        kinds[1] == rustls::HandshakeKind::Resumed
    };
    assert!(resumes(b"one", b"one"));
    assert!(!resumes(b"one", b"two"));
}

#[test]
fn every_suite_carries_bytes_both_ways_however_they_are_cut() {
    for (suite, version) in suites() {
        for piece in PIECES {
            let served = Served::new(piece);
            let mut peer = rustls_client(client(suite, version));
            served.run(&mut peer).unwrap();
            let facts = served.transport.tls_facts().unwrap();
            assert_eq!(facts.server_name.as_deref(), Some("a.example"));
            assert!(!facts.cipher.is_empty(), "{suite:?}");

            let question = pattern(40_000);
            peer.writer().write_all(&question).unwrap();
            let answer = pattern(200_000);
            served.transport.write(Payload::Copy(&answer));
            let mut sent = Vec::new();
            while peer.wants_write() {
                peer.write_tls(&mut sent).unwrap();
            }
            served.to_server.bytes.borrow_mut().extend(sent);
            assert!(served.received() == question, "{suite:?} {piece}");
            let received = std::mem::take(&mut *served.to_client.bytes.borrow_mut());
            let mut rest = received.as_slice();
            let mut got = Vec::new();
            while !rest.is_empty() {
                peer.read_tls(&mut rest).unwrap();
                peer.process_new_packets().unwrap();
                got.extend(read_all(&mut peer));
            }
            assert!(got == answer, "{suite:?} {piece}");
        }
    }
}

#[test]
fn a_reader_that_needs_more_than_a_record_gets_the_records_joined() {
    let (suite, version) = suites()[0];
    let served = Served::new(usize::MAX);
    let mut peer = rustls_client(client(suite, version));
    served.run(&mut peer).unwrap();
    for part in [&b"one "[..], b"two ", b"three"] {
        peer.writer().write_all(part).unwrap();
        peer.writer().flush().unwrap();
    }
    let mut sent = Vec::new();
    while peer.wants_write() {
        peer.write_tls(&mut sent).unwrap();
    }
    served.to_server.bytes.borrow_mut().extend(sent);
    let Poll::Ready(Ok(readable)) = served.transport.poll_readable(10) else {
        panic!("three records are there");
    };
    assert_eq!(readable.unread, 13);
    // A part is consumed, and the rest stays.
    served.transport.read(|bytes| {
        assert_eq!(bytes, b"one two three");
        (4, ())
    });
    served.transport.read(|bytes| {
        assert_eq!(bytes, b"two three");
        (bytes.len(), ())
    });
    assert!(served.transport.poll_readable(1).is_pending());
}

#[test]
fn close_notify_is_the_end_and_a_fin_without_it_is_not() {
    for is_closed in [true, false] {
        let (suite, version) = suites()[0];
        let served = Served::new(usize::MAX);
        let mut peer = rustls_client(client(suite, version));
        served.run(&mut peer).unwrap();
        peer.writer().write_all(b"last").unwrap();
        if is_closed {
            peer.send_close_notify();
        }
        let mut sent = Vec::new();
        while peer.wants_write() {
            peer.write_tls(&mut sent).unwrap();
        }
        served.to_server.bytes.borrow_mut().extend(sent);
        served.to_server.is_finished.set(true);
        assert_eq!(served.received(), b"last");
        match served.transport.poll_readable(1) {
            Poll::Ready(Ok(readable)) => assert!(is_closed && readable.finished),
            Poll::Ready(Err(error)) => {
                assert!(!is_closed && error == StreamError::Unfinished);
            }
            Poll::Pending => panic!("FIN has arrived"),
        }
    }
}

#[test]
fn our_end_is_told_unless_the_answer_was_cut() {
    for resets in [false, true] {
        let (suite, version) = suites()[0];
        let served = Served::new(usize::MAX);
        let mut peer = rustls_client(client(suite, version));
        served.run(&mut peer).unwrap();
        served.transport.write(Payload::Copy(b"half"));
        if resets {
            let _ = served.transport.set(StreamOption::ResetOnClose);
        }
        drop(served.transport);
        let received = std::mem::take(&mut *served.to_client.bytes.borrow_mut());
        peer.read_tls(&mut received.as_slice()).unwrap();
        let state = peer.process_new_packets().unwrap();
        assert_eq!(state.peer_has_closed(), !resets);
        assert_eq!(served.to_client.is_reset.get(), resets);
        assert_eq!(read_all(&mut peer), b"half");
    }
}

#[test]
fn new_keys_of_either_side_are_taken() {
    for (suite, version) in suites()
        .into_iter()
        .filter(|(suite, _)| suite.tls13().is_some())
    {
        let served = Served::new(usize::MAX);
        let mut peer = rustls_client(client(suite, version));
        served.run(&mut peer).unwrap();
        for round in 0..3_u8 {
            peer.refresh_traffic_keys().unwrap();
            peer.writer().write_all(&[round; 9]).unwrap();
            let mut sent = Vec::new();
            while peer.wants_write() {
                peer.write_tls(&mut sent).unwrap();
            }
            served.to_server.bytes.borrow_mut().extend(sent);
            assert_eq!(served.received(), [round; 9]);
            served.transport.write(Payload::Copy(&[round; 5]));
            served.run(&mut peer).unwrap();
            assert_eq!(read_all(&mut peer), [round; 5]);
        }
    }
}

#[test]
fn messages_that_have_no_place_behind_a_handshake_end_the_connection() {
    let (suite, version) = suites()
        .into_iter()
        .find(|(suite, _)| suite.tls13().is_some())
        .unwrap();
    let (unexpected, illegal, undecodable) = (10, 47, 50);
    for (content_type, message, expected) in [
        (ContentType::Handshake, &b""[..], unexpected),
        (ContentType::Alert, b"", unexpected),
        (ContentType::Alert, b"\x01", undecodable),
        (ContentType::ChangeCipherSpec, b"\x01", unexpected),
        // KeyUpdate: of another value, too long, and not at the end of its record.
        (ContentType::Handshake, b"\x18\0\0\x01\x02", illegal),
        (ContentType::Handshake, b"\x18\0\0\x02\0\0", undecodable),
        (
            ContentType::Handshake,
            b"\x18\0\0\x01\0\x18\0\0\x01\0",
            unexpected,
        ),
        // ClientHello, NewSessionTicket of a client, CertificateRequest, and half of a message.
        (ContentType::Handshake, b"\x01\0\0\0", unexpected),
        (ContentType::Handshake, b"\x04\0\0\0", unexpected),
        (ContentType::Handshake, b"\x0d\0\0\0", unexpected),
        (ContentType::Handshake, b"\x18\0\0\x01", unexpected),
    ] {
        let served = Served::new(usize::MAX);
        let mut peer = rustls_client(client(suite, version));
        served.run(&mut peer).unwrap();
        let secrets = peer.dangerous_extract_secrets().unwrap();
        let mut sealer = Sealer::new(secrets.tx, Version::Tls13).unwrap();
        let mut opener = Opener::new(secrets.rx, Version::Tls13).unwrap();
        let mut record = [0; 100];
        let len = sealer.seal(content_type, message, &mut record).unwrap();
        (served.to_server.bytes.borrow_mut()).extend(&record[..len]);
        let read = served.transport.poll_readable(1);
        assert_eq!(read, Poll::Ready(Err(StreamError::Tls)), "{message:?}");
        let mut answer: Vec<u8> = served.to_client.bytes.borrow_mut().drain(..).collect();
        let header = RecordHeader::parse(&answer).unwrap().unwrap();
        let opened = opener.open(header, &mut answer[5..]).unwrap();
        assert_eq!(opened.content_type, ContentType::Alert);
        assert_eq!(answer[5..7], [2, expected], "{content_type:?} {message:?}");
    }
}

#[test]
fn a_byte_that_was_changed_on_the_way_is_found_and_answered_by_an_alert() {
    let (suite, version) = suites()[0];
    let clean = {
        let served = Served::new(usize::MAX);
        let mut peer = rustls_client(client(suite, version));
        served.run(&mut peer).unwrap();
        peer.writer().write_all(b"hello").unwrap();
        let mut sent = Vec::new();
        peer.write_tls(&mut sent).unwrap();
        sent.len()
    };
    for at in 0..clean {
        let served = Served::new(usize::MAX);
        let mut peer = rustls_client(client(suite, version));
        served.run(&mut peer).unwrap();
        peer.writer().write_all(b"hello").unwrap();
        let mut sent = Vec::new();
        peer.write_tls(&mut sent).unwrap();
        sent[at] ^= 1;
        // A longer record than there is: its end is awaited.
        sent.extend([0; 256]);
        served.to_server.bytes.borrow_mut().extend(sent);
        match served.transport.poll_readable(1) {
            // The minor version and lengths that are awaited say nothing yet.
            Poll::Ready(Ok(readable)) => assert!(at == 2 && readable.unread == 5, "{at}"),
            Poll::Ready(Err(error)) => {
                assert_eq!(error, StreamError::Tls);
                assert!(
                    !served.to_client.bytes.borrow().is_empty(),
                    "{at}: an alert"
                );
                assert!(served.transport.tls_fault().is_some());
            }
            Poll::Pending => assert_eq!(at, 3, "the length's high byte"),
        }
        served.transport.read(|bytes| {
            assert!(at == 2 || bytes.is_empty(), "nothing unchecked is lent");
            (0, ())
        });
    }
}

#[test]
fn a_client_of_ours_reaches_a_server_of_rustls_with_every_suite() {
    for (suite, version) in suites() {
        for piece in PIECES {
            let (to_server, to_client) = (Rc::<Wire>::default(), Rc::<Wire>::default());
            let pipe = Pipe::new(&to_client, &to_server, piece);
            let name = ServerName::try_from("a.example").unwrap();
            let config = Arc::new(client(suite, version));
            let transport = Transport::client(pipe, config, name, TlsWorker::new());
            transport.begin_tls();
            let mut peer = ServerConnection::new(rustls_server(suite)).unwrap();
            // Held until the handshake is over.
            transport.write(Payload::Copy(b"question"));
            let mut got = Vec::new();
            for _ in 0..20 {
                let _ = transport.poll_drained(0);
                let _ = transport.poll_readable(1);
                let sent = std::mem::take(&mut *to_server.bytes.borrow_mut());
                let mut rest = sent.as_slice();
                while !rest.is_empty() {
                    peer.read_tls(&mut rest).unwrap();
                    peer.process_new_packets().unwrap();
                }
                let _ = peer.reader().read_to_end(&mut got);
                let mut answer = Vec::new();
                while peer.wants_write() {
                    peer.write_tls(&mut answer).unwrap();
                }
                to_client.bytes.borrow_mut().extend(answer);
            }
            assert_eq!(got, b"question", "{suite:?} {piece}");
            peer.writer().write_all(b"answer").unwrap();
            let mut answer = Vec::new();
            peer.write_tls(&mut answer).unwrap();
            to_client.bytes.borrow_mut().extend(answer);
            assert!(transport.poll_readable(6).is_ready());
            transport.read(|bytes| {
                assert_eq!(bytes, b"answer");
                (6, ())
            });
        }
    }
}

#[test]
fn a_server_whose_certificate_is_not_trusted_is_told_so() {
    for (suite, _) in suites() {
        for piece in PIECES {
            let (to_server, to_client) = (Rc::<Wire>::default(), Rc::<Wire>::default());
            let pipe = Pipe::new(&to_client, &to_server, piece);
            let (config, name) = wary_client().for_server(b"a.example", false);
            let transport = Transport::client(pipe, config, name, TlsWorker::new());
            transport.begin_tls();
            let mut peer = ServerConnection::new(rustls_server(suite)).unwrap();
            let mut told = None;
            for _ in 0..20 {
                let _ = transport.poll_drained(0);
                let sent = std::mem::take(&mut *to_server.bytes.borrow_mut());
                let mut rest = sent.as_slice();
                while !rest.is_empty() && told.is_none() {
                    peer.read_tls(&mut rest).unwrap();
                    told = peer.process_new_packets().err();
                }
                let mut answer = Vec::new();
                while peer.wants_write() {
                    peer.write_tls(&mut answer).unwrap();
                }
                to_client.bytes.borrow_mut().extend(answer);
            }
            let fault = transport.tls_fault().unwrap();
            assert!(fault.is_of_certificate(), "{suite:?} {piece}: {fault}");
            let told = told.unwrap();
            assert!(
                matches!(told, Error::AlertReceived(_)),
                "{suite:?} {piece}: {told}"
            );
        }
    }
}

/// A simple generator: the same numbers for a seed on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let high = usize::try_from(self.0 >> 33).unwrap();
        high % end.max(1)
    }

    /// Changes, removes or repeats some bytes.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at),
                1 => bytes.extend_from_within(at..),
                _ => {
                    let bit = 1 << self.below(8);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= bit;
                    }
                }
            }
        }
    }
}

#[test]
fn no_damage_of_a_handshake_ends_more_than_its_connection() {
    let server_context = server();
    let of_suites: Vec<_> = (suites().iter())
        .map(|(suite, _)| rustls_server(*suite))
        .collect();
    for seed in 0..600 {
        println!("seed {seed}");
        let mut numbers = Numbers(seed);
        let chosen = numbers.below(of_suites.len());
        let (suite, version) = suites()[chosen];
        let (to_server, to_client) = (Rc::<Wire>::default(), Rc::<Wire>::default());
        let piece = [1, 7, 1500, usize::MAX][numbers.below(4)];
        let name = ServerName::try_from("a.example").unwrap();
        let ours = if seed % 2 == 0 {
            let pipe = Pipe::new(&to_client, &to_server, piece);
            let config = Arc::new(client(suite, version));
            Transport::client(pipe, config, name, TlsWorker::new())
        } else {
            let pipe = Pipe::new(&to_server, &to_client, piece);
            let choice = Rc::new(Only(server_context.clone()));
            Transport::server(pipe, choice, TlsWorker::new())
        };
        ours.begin_tls();
        let (inward, outward) = if seed % 2 == 0 {
            (&to_client, &to_server)
        } else {
            (&to_server, &to_client)
        };
        let peer_config = Arc::clone(&of_suites[chosen]);
        let mut peer: rustls::Connection = if seed % 2 == 0 {
            ServerConnection::new(peer_config).unwrap().into()
        } else {
            rustls_client(client(suite, version)).into()
        };
        let damaged_flight = numbers.below(3);
        for flight in 0..6 {
            let mut bytes = Vec::new();
            while peer.wants_write() {
                peer.write_tls(&mut bytes).unwrap();
            }
            if flight == damaged_flight && !bytes.is_empty() {
                numbers.damage(&mut bytes);
            }
            inward.bytes.borrow_mut().extend(bytes);
            let _ = ours.poll_drained(0);
            let _ = ours.poll_readable(1);
            let sent = std::mem::take(&mut *outward.bytes.borrow_mut());
            let mut rest = sent.as_slice();
            while !rest.is_empty() {
                if peer.read_tls(&mut rest).is_err() || peer.process_new_packets().is_err() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_client_that_speaks_plain_http_is_heard_in_clear() {
    let served = Served::new(usize::MAX);
    (served.to_server.bytes.borrow_mut()).extend(b"GET / HTTP/1.1\r\n\r\n");
    assert!(served.transport.poll_readable(1).is_ready());
    assert!(served.transport.is_clear_where_tls_was_due());
    served.transport.read(|bytes| {
        assert_eq!(bytes, b"GET / HTTP/1.1\r\n\r\n");
        (bytes.len(), ())
    });
    served.transport.write(Payload::Copy(b"HTTP/1.1 400"));
    assert_eq!(*served.to_client.bytes.borrow(), b"HTTP/1.1 400");
}

#[test]
fn a_name_that_is_rejected_gets_its_alert() {
    let (suite, version) = suites()[0];
    let served = Served::new(usize::MAX);
    let name = ServerName::try_from("nobody.example").unwrap();
    let mut peer = ClientConnection::new(Arc::new(client(suite, version)), name).unwrap();
    let error = served.run(&mut peer).unwrap_err();
    assert!(error.to_string().contains("UnrecognisedName"), "{error}");
    assert_eq!(served.transport.tls_fault(), Some(Fault::Rejected));
}

#[test]
fn sessions_are_resumed_by_tickets() {
    for (suite, version) in suites() {
        let settings = server();
        let config = Arc::new(client(suite, version));
        for is_resumed in [false, true] {
            let served = Served::with(settings.clone(), usize::MAX);
            let name = ServerName::try_from("a.example").unwrap();
            let mut peer = ClientConnection::new(Arc::clone(&config), name).unwrap();
            served.run(&mut peer).unwrap();
            let facts = served.transport.tls_facts().unwrap();
            assert_eq!(facts.is_resumed, is_resumed, "{suite:?}");
        }
    }
}
