//! Attackers beside a usual client, in one world of virtual time. docs/attacks.md has the figures.
//!
//! The server stands before an origin that works on one request at a time, as a slow application does: what an attack
//! gets through to it, all others wait behind. A usual client asks for a page of its own, which no cache may keep, forty times a second.
//! Each attack runs three times: not at all, against the defence, and against the same server without it. The
//! defence holds if the usual client's answers take at most three times as long (of a hundred the slowest but one), and the test
//! is one only if they take longer without it.

/// More requests than the origin can serve.
mod floods;

/// Clients that hold connections, and take their time.
mod slow;

/// Requests that a cache has no answer for.
mod busting;

/// Many clients that ask for one thing at a time.
mod stampedes;

/// Requests whose answers are not for others.
mod poisoning;

use crate::answer::answer;
use crate::proxy::ORIGIN;
use crate::proxy::origin::{self, Act, Seen, send};
use crate::server::{ADDRESS, MS, Server};
use mill_sim::client::Client;
use mill_sim::link::Link;
use mill_sim::world::World;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

/// Another address of the server.
const ADDRESS_V6: &str = "[2001:db8::1]:80";

/// How far apart the steps of an attack are, and how many there are.
const STEP: Duration = Duration::from_millis(10);
const STEPS: usize = 500;

/// A usual client asks with every so many steps.
const USUAL_STEPS: usize = 2;

/// What the origin takes for a page.
const WORK: Duration = Duration::from_millis(2);

/// A server, its origin, and what the usual client has asked so far.
struct Scene {
    server: Server,
    seen: Rc<Seen>,
    usual: Vec<(Duration, Client)>,
}

/// Directives of the http block, and of the server.
#[derive(Clone, Copy, Debug)]
struct Rules {
    http: &'static str,
    server: &'static str,
}

impl Scene {
    fn new(rules: Rules) -> Self {
        let Rules { http, server } = rules;
        let text = format!(
            "error_log /error.log info; events {{ worker_connections 300; }}
             http {{
                 log_format cached '$status $upstream_cache_status';
                 access_log /access.log cached;
                 upstream app {{ server {ORIGIN}; }}
                 {http}
                 server {{
                     listen {ADDRESS}; listen {ADDRESS_V6}; server_name shop.example; root /site;
                     proxy_http_version 1.1; proxy_set_header Connection ''; proxy_set_header Host $host;
                     location /account/ {{ proxy_pass http://app; proxy_cache off; }}
                     {server}
                 }}
             }}"
        );
        let world = World::new(1);
        world.set_link(Link::delayed(MS));
        let mut server = Server::configured(world, &text, 1);
        let (turn, seen) = origin::start(&server.world, ORIGIN, |_, request| application(request));
        server.add_peer(turn);
        Self {
            server,
            seen,
            usual: Vec::new(),
        }
    }

    /// Lets an attack take its course, and the usual client ask beside it; until all of its answers should have come.
    fn run(&mut self, mut attack: impl FnMut(&Server, usize)) {
        for step in 0..STEPS {
            let now = STEP * u32::try_from(step).expect("few steps");
            self.server.run_to(now);
            attack(&self.server, step);
            if step % USUAL_STEPS == 0 {
                let client = ask(&self.server, "198.51.100.7", step, &usual(step));
                self.usual.push((now, client));
            }
        }
        let now = self.server.world.elapsed();
        self.server.run_to(now + 30 * Duration::from_secs(1));
    }

    /// The time below which 99 of 100 answers came; `None` if not so many came, with what was asked for.
    fn p99(&self) -> Option<Duration> {
        let time = |(begun, client): &(Duration, Client)| {
            let received = client.received();
            let is_served = !received.is_empty() && answer(&received).text().starts_with("account");
            let ended = client.ended_at().filter(|_| is_served)?;
            Some(ended.saturating_sub(*begun))
        };
        let mut times: Vec<Duration> = self.usual.iter().filter_map(time).collect();
        times.sort();
        times.get(self.usual.len() * 99 / 100 - 1).copied()
    }

    /// The access log's lines that begin so.
    fn logged(&self, begin: &str) -> usize {
        let lines = self.server.logs.lines("/access.log");
        lines.iter().filter(|line| line.starts_with(begin)).count()
    }
}

fn usual(step: usize) -> String {
    format!("GET /account/{step} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n")
}

/// A client at this address that asks now.
fn ask(server: &Server, host: &str, number: usize, request: &str) -> Client {
    let port = 1024 + number % 60_000;
    let client = match host.contains(':') {
        true => server
            .world
            .connect_from(&format!("[{host}]:{port}"), ADDRESS_V6),
        false => server
            .world
            .connect_from(&format!("{host}:{port}"), ADDRESS),
    };
    client.send(request);
    client
}

/// What the origin does: it tells what was asked, and for how long that may be kept.
fn application(request: &str) -> Vec<Act> {
    let target = request.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let field = |name: &str| {
        let mut lines = request.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let (work, fields, content) = if path.starts_with("/account/") {
        (
            WORK,
            "Cache-Control: private\r\n",
            format!("account {target}"),
        )
    } else if path.starts_with("/hot") {
        let age = "Cache-Control: max-age=1\r\n";
        (5 * WORK, age, format!("hot {target}"))
    } else if path.starts_with("/words/") {
        let language = field("Accept-Language").unwrap_or("none");
        let varies = "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n";
        (WORK, varies, format!("words in {language}"))
    } else {
        (
            WORK,
            "Cache-Control: max-age=60\r\n",
            format!("page {target}"),
        )
    };
    let range = field("Range").map_or(String::new(), |range| format!("X-Range: {range}\r\n"));
    let len = content.len();
    let head = format!("HTTP/1.1 200 OK\r\n{fields}{range}Content-Length: {len}\r\n\r\n");
    vec![Act::Work(work), send(&(head + &content))]
}

/// What a usual client waits for: without an attack, under it, and under it without the defence.
struct Figures {
    quiet: Scene,
    attacked: Scene,
    undefended: Scene,
}

impl Figures {
    /// `attack` gets the server and the number of each step.
    fn of<A: FnMut(&Server, usize)>(
        defended: Rules,
        undefended: Rules,
        attack: impl Fn() -> A,
    ) -> Self {
        let (mut quiet, mut attacked) = (Scene::new(defended), Scene::new(defended));
        let mut alone = Scene::new(undefended);
        quiet.run(|_, _| ());
        attacked.run(attack());
        alone.run(attack());
        Self {
            quiet,
            attacked,
            undefended: alone,
        }
    }

    /// The defence holds, is needed, and is told in docs/attacks.md.
    #[track_caller]
    fn check(&self, name: &str) {
        let quiet = self.quiet.p99().expect("all is served without an attack");
        let bound = 3 * quiet;
        let attacked = self.attacked.p99();
        assert!(attacked.is_some_and(|p99| p99 <= bound), "{name}: {self}");
        let undefended = self.undefended.p99();
        assert!(undefended.is_none_or(|p99| p99 > bound), "{name}: {self}");
        let document = include_str!("../../../../docs/attacks.md");
        let row = document
            .lines()
            .find(|line| line.starts_with(&format!("| {name} |")));
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| {self} |"))),
            "docs/attacks.md: | {name} | … | {self} |, but {row:?}"
        );
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p99 = |scene: &Scene| match scene.p99() {
            Some(time) => format!("{} ms", time.as_millis()),
            None => String::from("not served"),
        };
        let (quiet, attacked) = (p99(&self.quiet), p99(&self.attacked));
        write!(
            formatter,
            "{quiet} | {attacked} | {}",
            p99(&self.undefended)
        )
    }
}
