//! A handler that reads a request's content and answers in steps, over the HTTP/1 exchange.

use crate::answer::{answer, answers};
use crate::server::{ADDRESS, MS, SECOND, one_server, shared, site};
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::status::Status;
use mill_runtime::engine::{Engine, ListenOptions};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::stream::Stream;
use mill_runtime::worker::Worker;
use mill_server::answer::Answer;
use mill_server::exchange::h1::H1Exchange;
use mill_server::exchange::{ContentError, Exchange};
use mill_server::listener_context::ListenerContext;
use mill_server::local::{FileOf, Local};
use mill_server::request::{Arrival, ConnectionFacts, Message, Request};
use mill_server::response::{FieldLine, Response};
use mill_sim::client::Client;
use mill_sim::engine::SimEngine;
use mill_sim::world::{Until, World};
use mill_tls::transport::Transport;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A server whose only handler echoes the request's content.
struct EchoServer {
    world: World,
    turn: Box<dyn FnMut()>,
    shown: Rc<Shown>,
}

/// What the handler does, and its results.
#[derive(Debug, Default)]
struct Shown {
    /// Bytes that it reads at a time.
    most: Cell<usize>,
    /// It sends 103 before it reads.
    hints: Cell<bool>,
    /// How long it takes for each piece.
    pause: Cell<Duration>,
    pieces: RefCell<Vec<usize>>,
    errors: RefCell<Vec<ContentError>>,
}

impl EchoServer {
    fn new(most: usize, directives: &str) -> Self {
        let world = World::new(1);
        let engine = world.engine();
        let site = site(&one_server(directives), 1);
        let (now, wall_clock) = engine.clock();
        let scheduler = Scheduler::new(now, wall_clock);
        let local = Local::new(
            engine.clone(),
            Rc::clone(&scheduler),
            Arc::clone(&site),
            shared(),
        );
        let shown = Rc::new(Shown::default());
        shown.most.set(most);
        let listening = engine
            .listen(&ListenOptions::new(world.address(ADDRESS)))
            .expect("the address is free");
        let context = ListenerContext::new(listening.id.0, &site, 0).expect("a listener");
        let context = Rc::new(context);
        let accepted = {
            let shown = Rc::clone(&shown);
            move |stream, _| {
                serve(
                    stream,
                    Rc::clone(&context),
                    Rc::clone(&local),
                    Rc::clone(&shown),
                )
            }
        };
        let mut worker = Worker::new(engine, scheduler, accepted);
        worker.add_listener(listening.id);
        Self {
            world,
            turn: Box::new(move || {
                worker.turn();
            }),
            shown,
        }
    }

    fn connect(&self) -> Client {
        self.world.connect(ADDRESS)
    }

    fn run_until(&mut self, until: Until) {
        let Self { world, turn, .. } = self;
        world.run(turn, until);
    }

    /// Sends a request, the rest of it `later`, and returns all received bytes.
    fn ask(&mut self, now: &str, later: &str) -> Vec<u8> {
        let client = self.connect();
        client.send(now);
        client.at(self.world.elapsed() + 10 * MS).send(later);
        let end = self.world.elapsed() + SECOND;
        self.run_until(Until::At(end));
        client.received()
    }
}

/// Serves one request after the other, until the connection closes.
async fn serve(
    stream: <SimEngine as Engine>::Stream,
    context: Rc<ListenerContext>,
    local: Rc<Local<SimEngine>>,
    shown: Rc<Shown>,
) {
    let connection = Rc::new(ConnectionFacts {
        number: 1,
        listener: context.id,
        peer: stream.peer(),
        reached: OnceCell::new(),
        listening_at: stream.local(),
        proxy_header: None,
        transport: Cell::new(None),
        misses: Default::default(),
        tls: OnceCell::new(),
        lacks_tls: Cell::new(false),
        started: local.scheduler.now(),
        is_free: false,
    });
    let transport = Transport::Tcp(stream);
    for connection_requests in 1.. {
        let Some(message) = read_head(&transport, &context).await else {
            return;
        };
        let arrival = Arrival {
            connection: Rc::clone(&connection),
            listener: context.listener(),
            connection_requests,
            message,
            pipelined: false,
        };
        let mut request = Request::new(arrival, &local).expect("the listener is there");
        let mut exchange = H1Exchange::new(&transport, &context, &local, &request.message.head);
        if !echo(&mut exchange, &mut request, &local, &shown).await {
            return;
        }
    }
}

async fn read_head<S: Stream>(stream: &S, context: &ListenerContext) -> Option<Message> {
    let mut message = Message::default();
    let mut least = 1;
    loop {
        let readable = stream.readable(least).await.ok()?;
        let is_whole = stream.read(|bytes| {
            least = bytes.len() + 1;
            match parse_request(bytes, &mut message.head, &context.rules()) {
                Parsed::Complete { consumed } => {
                    message.bytes.extend_from_slice(&bytes[..consumed]);
                    (consumed, true)
                }
                _ => (0, false),
            }
        });
        if is_whole {
            return Some(message);
        }
        if readable.finished {
            return None;
        }
    }
}

/// The handler; returns whether the connection stays open.
async fn echo<X: Exchange<Engine = SimEngine>>(
    exchange: &mut X,
    request: &mut Request,
    local: &Local<SimEngine>,
    shown: &Shown,
) -> bool {
    if shown.hints.get() {
        let link = FieldLine {
            name: "Link".into(),
            value: "</style.css>; rel=preload".into(),
        };
        exchange.interim(request, Status::EARLY_HINTS, &[link]);
    }
    let (content, read) = read_content(exchange, request, local, shown).await;
    let mut response = match read {
        Ok(()) => Response::with_bytes(Status::OK, b"text/plain", content),
        Err(error) => {
            shown.errors.borrow_mut().push(error);
            match Answer::<FileOf<SimEngine>>::without_content(error, request, local) {
                Answer::Status(status) => Response::with_bytes(status, b"text/plain", *b"no"),
                _ => return false,
            }
        }
    };
    response.close = request.closing;
    let framed = exchange.discard_present(request, response.close);
    assert_eq!(framed, Ok(()));
    exchange.respond(request, Box::new(response)).await.is_ok()
        && exchange.discard_rest(request).await.is_ok()
        && read.is_ok()
}

async fn read_content<X: Exchange<Engine = SimEngine>>(
    exchange: &mut X,
    request: &Request,
    local: &Local<SimEngine>,
    shown: &Shown,
) -> (Vec<u8>, Result<(), ContentError>) {
    let mut content = Vec::new();
    loop {
        let take = |piece: &[u8]| {
            shown.pieces.borrow_mut().push(piece.len());
            content.extend_from_slice(piece);
        };
        match exchange.content(request, shown.most.get(), take).await {
            Ok(true) => {}
            Ok(false) => return (content, Ok(())),
            Err(error) => return (content, Err(error)),
        }
        if !shown.pause.get().is_zero() {
            local.scheduler.sleep(shown.pause.get()).await;
        }
    }
}

const LENGTH: &str = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
const CHUNKS: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                      4;a=b\r\n0123\r\n6\r\n456789\r\n0\r\nX: y\r\n\r\n";

#[test]
fn a_handler_reads_content_in_pieces_no_larger_than_it_wants() {
    for request in [LENGTH, CHUNKS] {
        for most in [1, 3, 10, usize::MAX] {
            for split in 0..request.len() {
                let mut server = EchoServer::new(most, "");
                let (now, later) = request.split_at(split);
                let received = server.ask(now, later);
                assert_eq!(answer(&received).text(), "0123456789", "{now} | {later}");
                let pieces = server.shown.pieces.borrow();
                assert!(pieces.iter().all(|piece| *piece <= most), "{pieces:?}");
            }
        }
    }
}

#[test]
fn what_follows_the_content_is_the_next_request() {
    let mut server = EchoServer::new(3, "");
    let received = server.ask(&[CHUNKS, LENGTH, CHUNKS].concat(), LENGTH);
    let texts: Vec<String> = answers(&received)
        .iter()
        .map(|answer| answer.text())
        .collect();
    assert_eq!(texts, ["0123456789"; 4]);
}

#[test]
fn a_client_that_expects_100_gets_it_when_the_handler_reads() {
    let mut server = EchoServer::new(usize::MAX, "");
    let head = LENGTH.replace("\r\n\r\n0123456789", "\r\nExpect: 100-continue\r\n\r\n");
    let received = server.ask(&head, "0123456789");
    let text = String::from_utf8(received).unwrap();
    let (asked, last) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!(asked, "HTTP/1.1 100 Continue");
    assert_eq!(answer(last.as_bytes()).text(), "0123456789");
}

#[test]
fn an_interim_answer_goes_before_the_final_one_to_a_client_of_1_1() {
    for version in ["1.0", "1.1"] {
        let mut server = EchoServer::new(usize::MAX, "");
        server.shown.hints.set(true);
        let received = server.ask(&LENGTH.replace("HTTP/1.1", &format!("HTTP/{version}")), "");
        let text = String::from_utf8(received).unwrap();
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
        let last = if version == "1.1" {
            text.strip_prefix(hints).unwrap()
        } else {
            &*text
        };
        assert_eq!(answer(last.as_bytes()).text(), "0123456789");
    }
}

#[test]
fn content_without_a_length_is_counted_where_it_is_read() {
    for (limit, status, error) in [(10, 200, None), (9, 413, Some(ContentError::TooLarge))] {
        for most in [1, 4, usize::MAX] {
            let mut server = EchoServer::new(most, &format!("client_max_body_size {limit};"));
            let received = server.ask(CHUNKS, "");
            assert_eq!(answer(&received).status, status, "{limit} {most}");
            let errors = server.shown.errors.borrow();
            assert_eq!(errors.first().copied(), error);
        }
    }
}

#[test]
fn a_client_that_stops_in_its_content_times_out_after_client_body_timeout() {
    for request in [LENGTH, CHUNKS] {
        let mut server = EchoServer::new(usize::MAX, "client_body_timeout 5s;");
        let client = server.connect();
        let head = request.find("\r\n\r\n").unwrap() + 4;
        client.send(&request[..head]);
        client.at(3 * SECOND).send(&request[head..head + 8]);
        server.run_until(Until::At(7999 * MS));
        assert_eq!(client.received(), b"");
        server.run_until(Until::At(8 * SECOND));
        let answer = answer(&client.received());
        assert_eq!((answer.status, answer.keeps_alive()), (408, false));
        assert_eq!(*server.shown.errors.borrow(), [ContentError::TimedOut]);
    }
}

#[test]
fn a_handler_learns_that_its_client_has_left_or_sent_malformed_content() {
    let check = |end: fn(&Client), expected: fn(&ContentError) -> bool| {
        let mut server = EchoServer::new(usize::MAX, "");
        let client = server.connect();
        client.send(&CHUNKS[..CHUNKS.len() - 20]);
        end(&client.at(10 * MS));
        server.run_until(Until::At(SECOND));
        let errors = server.shown.errors.borrow();
        assert!(
            errors.len() == 1 && errors.iter().all(expected),
            "{errors:?}"
        );
    };
    let is_lost = |error: &ContentError| matches!(error, ContentError::Lost(_));
    check(|client| _ = client.reset(), is_lost);
    check(|client| _ = client.finish(), is_lost);
    check(
        |client| _ = client.send("nonsense"),
        |error| *error == ContentError::Malformed,
    );
}

#[test]
fn a_slow_handler_lets_its_client_wait() {
    let mut server = EchoServer::new(1000, "");
    server.shown.pause.set(10 * MS);
    let client = server.connect();
    let content = "x".repeat(1_000_000);
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{content}",
        content.len()
    ));
    server.run_until(Until::At(9 * SECOND));
    assert_eq!(client.received(), b"", "900 of 1000 pieces");
    server.run_until(Until::At(11 * SECOND));
    assert_eq!(answer(&client.received()).content.len(), content.len());
}
