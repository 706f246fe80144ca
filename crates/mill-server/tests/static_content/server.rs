//! One configuration over a small site of simulated files, without connections.

use crate::recorder::{Recorder, done, whole};
use mill_config::{Memory, Options, load};
use mill_http::date::imf_fixdate;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::limits::HeadRules;
use mill_metrics::Board;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::scheduler::Scheduler;
use mill_server::local::{Environment, FileOf, Local, Shared};
use mill_server::log::LogSender;
use mill_server::request::{self, Arrival, ConnectionFacts, Message, Request};
use mill_server::response::Response;
use mill_server::site::Site;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// One configuration over a small site.
pub(crate) struct Server {
    pub(crate) world: World,
    local: Rc<Local<SimEngine>>,
    logs: LogSender,
}

impl Server {
    /// `directives` go into a `server` block.
    pub(crate) fn new(directives: &str) -> Self {
        let world = World::new(1);
        for (path, content) in [
            ("/srv/a.txt", "0123456789"),
            ("/srv/empty.txt", ""),
            ("/srv/long.html", &*"<p>the mill stream</p>".repeat(100)),
            ("/srv/z.txt", "plain"),
            ("/srv/z.txt.gz", "zipped"),
            ("/srv/dir/index.html", "index"),
            ("/srv/dir/other.html", "other"),
        ] {
            world.files().write(path, content);
        }
        world.files().create_directory("/srv/none");
        let text = format!(
            "error_log /error.log info; events {{ }}
            http {{
                access_log off;
                types {{ text/html html; text/plain txt; }}
                server {{ listen 127.0.0.1:8123; root /srv; {directives} }}
            }}"
        );
        let options = Options::default();
        let source = Memory::new().with(&*options.conf_file(), &text);
        let config = match load(&source, &options) {
            Ok(loaded) => loaded.config,
            Err(failure) => panic!("{:?}\n{text}", failure.error),
        };
        let engine = world.engine();
        let (now, wall_clock) = engine.clock();
        let logs = LogSender::memory();
        let shared = Shared {
            index: 0,
            environment: Environment {
                pid: 100,
                thread_id: 100,
                hostname: Arc::from(&b"sim"[..]),
                utc_offset: |_| 3600,
                connection_numbers: Arc::default(),
            },
            logs: logs.clone(),
            board: Board::in_memory(1),
        };
        let scheduler = Scheduler::new(now, wall_clock);
        let site = Arc::new(Site::new(config, 1));
        let local = Local::new(engine, scheduler, site, shared);
        Self { world, local, logs }
    }

    /// Requests `METHOD TARGET | FIELD: VALUE | …` and compares `STATUS | FIELD: VALUE | … | CONTENT`. `{date}` is the
    /// files' date.
    pub(crate) fn check(&self, asked: &str, expected: &str) {
        let date = imf_fixdate(self.local.scheduler.wall_clock().seconds);
        let date = std::str::from_utf8(&date).expect("a date is text");
        assert_eq!(self.ask(asked), expected.replace("{date}", date), "{asked}");
    }

    pub(crate) fn ask(&self, asked: &str) -> String {
        match self.answer(asked) {
            Some(response) => self.show(response),
            None => String::from("closed"),
        }
    }

    /// The content alone, also of an error page.
    pub(crate) fn content_of(&self, asked: &str) -> String {
        match self.answer(asked) {
            Some(response) => {
                let content = whole(response, &self.local);
                String::from_utf8_lossy(&content).into_owned()
            }
            None => String::from("closed"),
        }
    }

    /// The answer as it is sent; `None` if the connection is closed without one.
    fn answer(&self, asked: &str) -> Option<Response<FileOf<SimEngine>>> {
        let mut parts = asked.split(" | ");
        let line = parts.next().unwrap_or_default();
        let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
        let text = format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let mut message = Message::default();
        let parsed = parse_request(text.as_bytes(), &mut message.head, &HeadRules::default());
        assert!(
            matches!(parsed, Parsed::Complete { .. }),
            "{text}: {parsed:?}"
        );
        message.bytes = text.into_bytes();
        let arrival = Arrival {
            connection: Rc::new(ConnectionFacts {
                number: 1,
                listener: 0,
                peer: Address::Ip("127.0.0.1:50000".parse().expect("an address")),
                local: self.world.address("127.0.0.1:8123"),
                transport: Cell::new(None),
                started: self.world.now(),
            }),
            listener: 0,
            connection_requests: 1,
            message,
            pipelined: false,
        };
        let request = Request::new(arrival, &self.local).expect("the listener is there");
        let mut recorder = Recorder::default();
        done(request::handle(&mut recorder, request, &self.local));
        recorder.answer
    }

    fn show(&self, response: Response<FileOf<SimEngine>>) -> String {
        let mut parts = vec![response.status.0.to_string()];
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        parts.extend(response.content_type.as_deref().map(text));
        let modified = response.last_modified.map(|at| text(&imf_fixdate(at)));
        parts.extend(modified.map(|date| format!("modified {date}")));
        parts.extend(response.location.as_deref().map(text));
        parts.extend(response.vary.then(|| String::from("vary")));
        parts.extend(response.etag.as_deref().map(text));
        let lines = response.fields.iter().chain(&response.trailers);
        parts.extend(lines.map(|line| format!("{}: {}", text(&line.name), text(&line.value))));
        let is_page = response.status.0 >= 300;
        let content = whole(response, &self.local);
        if !is_page && !content.is_empty() {
            parts.push(text(&content));
        }
        parts.join(" | ")
    }

    /// The last line of the error log, from its level on and without the details of the request.
    pub(crate) fn last_error(&self) -> String {
        self.local.log.end_of_turn(self.world.now());
        let lines = self.logs.lines("/error.log");
        let line = lines.last().map(String::as_str).unwrap_or_default();
        let (_, line) = line.split_once('[').unwrap_or_default();
        let (level, line) = line.split_once("] ").unwrap_or_default();
        let (_, message) = line.split_once(": *1 ").unwrap_or_default();
        let (message, _) = message.rsplit_once(", client: ").unwrap_or_default();
        format!("{level} {message}")
    }
}
