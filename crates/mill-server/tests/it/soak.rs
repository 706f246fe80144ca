//! Hundreds of random worlds: whatever the segments, delays, windows and pipelines, every answer arrives whole, in
//! order, with the right bytes. A failing test prints its seed.

use crate::answer::{Ending, next};
use crate::server::{ADDRESS, SECOND, Server, big, one_server};
use mill_runtime::engine::Engine;
use mill_sim::client::Client;
use mill_sim::engine::SimEngine;
use mill_sim::link::{Link, Segments};
use mill_sim::world::World;
use std::time::Duration;

const SEEDS: u64 = 300;

/// Random choices of a seed, from an engine of the world that serves no connection.
struct Dice(SimEngine);

impl Dice {
    fn up_to(&self, most: u64) -> u64 {
        self.0.random() % (most + 1)
    }

    fn count(&self, most: u64) -> usize {
        usize::try_from(self.up_to(most)).expect("a small number")
    }

    fn one_of<T: Copy>(&self, items: &[T]) -> T {
        let count = items.len() as u64;
        items[self.count(count - 1)]
    }

    fn millis(&self, most: u64) -> Duration {
        Duration::from_millis(self.up_to(most))
    }

    fn link(&self) -> Link {
        let most = 1 + self.count(2000);
        Link {
            delay: self.millis(20),
            jitter: self.millis(20),
            bytes_per_second: self.one_of(&[None, Some(200_000), Some(5_000_000)]),
            window_bytes: 200 + self.up_to(100_000),
            segments: self.one_of(&[Segments::UpTo(most), Segments::Random(most)]),
        }
    }
}

/// A request, and its expected answer.
#[derive(Clone, Copy)]
struct Step {
    request: &'static str,
    method: &'static str,
    status: u16,
    content: Expected,
}

#[derive(Clone, Copy)]
enum Expected {
    Text(&'static str),
    Big(usize, usize),
    ZippedBig,
    /// A built-in page.
    Page,
    Nothing,
}

const STEPS: [Step; 12] = [
    step(
        "GET",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        200,
        Expected::Text("home\n"),
    ),
    step(
        "GET",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        200,
        Expected::Text("file a\n"),
    ),
    step(
        "GET",
        "GET /b.txt HTTP/1.1\r\nhost:b\r\n\r\n",
        200,
        Expected::Text("file b\n"),
    ),
    step(
        "GET",
        "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        200,
        Expected::Big(0, 100_000),
    ),
    step(
        "GET",
        "GET /big.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=100-50099\r\n\r\n",
        206,
        Expected::Big(100, 50_100),
    ),
    step(
        "GET",
        "GET /big.bin HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
        200,
        Expected::ZippedBig,
    ),
    step(
        "HEAD",
        "HEAD /big.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        200,
        Expected::Nothing,
    ),
    step(
        "GET",
        "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
        404,
        Expected::Page,
    ),
    step(
        "GET",
        "GET /a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n",
        304,
        Expected::Nothing,
    ),
    step(
        "POST",
        "POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nGET / HTTP/1.1\r\n\r\nab",
        405,
        Expected::Page,
    ),
    step(
        "POST",
        "POST /r HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
        200,
        Expected::Text("returned"),
    ),
    step(
        "GET",
        "GET /r HTTP/1.1\r\nHost: a\r\n\r\n",
        200,
        Expected::Text("returned"),
    ),
];

const fn step(method: &'static str, request: &'static str, status: u16, content: Expected) -> Step {
    Step {
        request,
        method,
        status,
        content,
    }
}

/// A client's requests, and the pieces in which they are sent.
struct Talk {
    client: Client,
    steps: Vec<Step>,
}

/// A seed's server, its random choices, and its configuration.
fn start(seed: u64) -> (Server, Dice, String) {
    let world = World::new(seed);
    let dice = Dice(world.engine());
    let directives = [
        dice.one_of(&[
            "",
            "open_file_cache max=9;",
            "open_file_cache max=1 inactive=1s;",
        ]),
        dice.one_of(&["sendfile on;", "sendfile off;"]),
        dice.one_of(&[
            "",
            "limit_rate 2m;",
            "tcp_nopush on;",
            "keepalive_requests 100000;",
        ]),
        dice.one_of(&["", "access_log /access.log;"]),
    ]
    .concat();
    let common = "gzip on; gzip_types *; location /r { return 200 returned; } send_timeout 600s;
                  client_header_timeout 600s; lingering_timeout 600s; lingering_time 600s;
                  keepalive_timeout 600s;";
    let workers = 1 + dice.count(1);
    let listen = dice.one_of(&[ADDRESS, "10.0.0.1:80 reuseport", "10.0.0.1:80 deferred"]);
    let text = one_server(&format!("{common} {directives}")).replace(ADDRESS, listen);
    let server = Server::configured(world, &text, workers);
    server.files().set_len("/site/big.bin", 100_000);
    if dice.up_to(2) == 0 {
        server.files().set_latency(dice.millis(10));
    }
    (server, dice, text)
}

fn talk(server: &Server, dice: &Dice) -> Talk {
    server.world.set_link(dice.link());
    let start = dice.millis(500);
    let client = server.world.connect_at(start, ADDRESS);
    let count = 1 + dice.up_to(14);
    let steps: Vec<Step> = (0..count).map(|_| dice.one_of(&STEPS)).collect();
    let bytes: String = steps.iter().map(|step| step.request).collect();
    let mut rest = bytes.as_bytes();
    let mut at = start + Duration::from_millis(100);
    let piece_max = dice.one_of(&[10, 100, 10_000]);
    while !rest.is_empty() {
        let len = (1 + dice.count(piece_max)).min(rest.len());
        client.at(at).send(&rest[..len]);
        rest = &rest[len..];
        at += dice.millis(30);
    }
    if dice.up_to(3) == 0 {
        let rate = 20_000 + u32::try_from(dice.up_to(500_000)).expect("a small number");
        client.at(start).read_at_rate(rate);
    }
    Talk { client, steps }
}

fn check(talk: &Talk, seed: u64) {
    let received = talk.client.received();
    let mut rest = received.as_slice();
    for (index, step) in talk.steps.iter().enumerate() {
        assert!(
            !rest.is_empty(),
            "seed {seed}: no answer to step {index} {}",
            step.request
        );
        let (answer, ending) = next(step.method, &mut rest);
        assert_eq!(
            ending,
            Ending::Whole,
            "seed {seed}, step {index} {}",
            step.request
        );
        assert_eq!(
            answer.status, step.status,
            "seed {seed}, step {index} {}",
            step.request
        );
        let same = match step.content {
            Expected::Text(text) => answer.content == text.as_bytes(),
            Expected::Big(start, end) => answer.content == big()[start..end],
            Expected::ZippedBig => answer.unzipped() == big()[..100_000],
            Expected::Page => answer.text().contains(&format!("<h1>{} ", step.status)),
            Expected::Nothing => answer.content.is_empty(),
        };
        assert!(
            same,
            "seed {seed}, step {index} {}: {answer:?}",
            step.request
        );
    }
    assert!(
        rest.is_empty(),
        "seed {seed}: more than was asked for: {}",
        crate::answer::shown(rest)
    );
    assert!(!talk.client.was_reset(), "seed {seed}");
}

/// Runs a seed's world to its end; returns a record of it.
fn run(seed: u64) -> String {
    let (mut server, dice, text) = start(seed);
    let talks: Vec<Talk> = (0..=dice.up_to(5)).map(|_| talk(&server, &dice)).collect();
    for _ in 0..dice.up_to(3) {
        server.run_to(server.world.elapsed() + dice.millis(400));
        server.adopt(&text);
    }
    server.run();
    // While a client waits for `limit_rate`, nothing is in flight.
    server.run_to(server.world.elapsed() + 200 * SECOND);
    for talk in &talks {
        check(talk, seed);
        talk.client.finish();
    }
    server.run();
    assert_eq!(server.streams(), 0, "seed {seed}");
    let requests: usize = talks.iter().map(|talk| talk.steps.len()).sum();
    let counted = server.counters().requests;
    assert_eq!(counted, requests as u64, "seed {seed}");
    let is_logged = text.contains("access_log /access.log");
    let lines = server.logs.lines("/access.log").len();
    assert_eq!(lines, if is_logged { requests } else { 0 }, "seed {seed}");
    server.assert_nothing_left(2 * 9);
    assert!(server.world.elapsed() < 600 * SECOND, "seed {seed}");
    server.world.ladder()
}

#[test]
fn in_every_world_every_answer_comes_whole() {
    for seed in 0..SEEDS {
        run(seed);
    }
}

#[test]
fn the_same_seed_makes_the_same_world() {
    for seed in [0, 1, 17, 99, 255] {
        assert!(run(seed) == run(seed), "seed {seed}");
    }
    assert!(run(1) != run(2));
}

#[test]
fn clients_that_vanish_at_random_leave_nothing() {
    for seed in 1000..1000 + SEEDS {
        let (mut server, dice, _) = start(seed);
        for _ in 0..4 {
            let talk = talk(&server, &dice);
            let end = Duration::from_millis(500 + dice.up_to(3000));
            if dice.up_to(1) == 0 {
                talk.client.at(end).reset();
            } else {
                talk.client.at(end).finish();
            }
        }
        server.run();
        // Clients that sent FIN within a request or read slowly time out in the end.
        server.run_until_idle();
        server.assert_nothing_left(2 * 9);
    }
}
