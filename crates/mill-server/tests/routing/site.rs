//! A worker's shared part over simulated files.

use crate::recorder::{Recorder, done, whole};
use mill_config::{Memory, Options, load};
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
use mill_server::site::Site as Configuration;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Where the server listens: the port shows in redirects.
const ADDRESS: &str = "127.0.0.1:8123";

/// Every case has these files.
const FILES: [(&str, &str); 8] = [
    ("/srv/index.html", "index\n"),
    ("/srv/a.txt", "file a\n"),
    ("/srv/404.html", "custom 404\n"),
    ("/srv/50x.html", "custom 50x\n"),
    ("/srv/dir/index.html", "dir index\n"),
    ("/srv/dir/b.txt", "file b\n"),
    ("/srv/other/r/x.txt", "other x\n"),
    ("/srv/sp dir/x", "x"),
];

/// One configuration in force.
pub(crate) struct Site {
    world: World,
    local: Rc<Local<SimEngine>>,
    logs: LogSender,
    /// How many lines of the error log and of the access log were shown.
    errors_seen: Cell<usize>,
    accesses_seen: Cell<usize>,
}

impl Site {
    pub(crate) fn new(directives: &str, http_directives: &str) -> Self {
        let world = World::new(1);
        for (path, content) in FILES {
            world.files().write(path, content);
        }
        world.files().create_directory("/srv/empty");
        let text = format!(
            "error_log /error.log notice; events {{ }}
            http {{
                access_log off;
                types {{ text/html html; text/plain txt; image/png png; }}
                default_type text/plain;
                {http_directives}
                server {{ listen {ADDRESS}; root /srv; {directives} }}
            }}"
        );
        let mut options = Options::default();
        options.paths.prefix = b"/".to_vec();
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
                utc_offset: |_| 0,
                connection_numbers: Arc::default(),
            },
            logs: logs.clone(),
            board: Board::in_memory(1),
        };
        let scheduler = Scheduler::new(now, wall_clock);
        let local = Local::new(
            engine,
            scheduler,
            Arc::new(Configuration::new(config, 1)),
            shared,
        );
        Self {
            world,
            local,
            logs,
            errors_seen: Cell::new(0),
            accesses_seen: Cell::new(0),
        }
    }

    /// Answers `METHOD TARGET [VERSION] | FIELD: VALUE | …`; there is a `Host: a` unless another one or `-Host` is
    /// given.
    pub(crate) fn ask(&self, line: &str) -> String {
        let recorder = self.handle(line);
        let is_head = recorder.is_head;
        let mut shown = match recorder.answer {
            None => String::from("< closed\n"),
            Some(response) => self.show(is_head, response),
        };
        self.local.log.end_of_turn(self.world.now());
        let lines = self.logs.lines("/error.log");
        for line in lines.iter().skip(self.errors_seen.replace(lines.len())) {
            shown += &format!("! {}\n", message_of(line));
        }
        let lines = self.logs.lines("/access.log");
        for line in lines.iter().skip(self.accesses_seen.replace(lines.len())) {
            shown += &format!("& {line}\n");
        }
        shown
    }

    /// Whether the answer may be kept for the same request.
    pub(crate) fn is_pure(&self, line: &str) -> bool {
        self.handle(line).pure
    }

    fn handle(&self, line: &str) -> Recorder {
        let mut recorder = Recorder::default();
        let request = self.request(line);
        done(request::handle(&mut recorder, request, &self.local));
        recorder
    }

    fn request(&self, line: &str) -> Request {
        let mut parts = line.split(" | ");
        let mut text = String::from(parts.next().unwrap_or_default());
        if !text.contains(" HTTP/") {
            text += " HTTP/1.1";
        }
        let mut fields: Vec<&str> = parts.collect();
        let has_host = fields.iter().any(|field| field.starts_with("Host:"));
        let host_wanted = !has_host && !fields.contains(&"-Host");
        fields.retain(|field| *field != "-Host");
        if host_wanted {
            fields.push("Host: a");
        }
        text += "\r\n";
        for field in fields {
            text += &format!("{field}\r\n");
        }
        text += "\r\n";
        let mut message = Message::default();
        let parsed = parse_request(text.as_bytes(), &mut message.head, &HeadRules::default());
        assert!(
            matches!(parsed, Parsed::Complete { .. }),
            "{line}: {parsed:?}"
        );
        message.bytes = text.into_bytes();
        let arrival = Arrival {
            connection: Rc::new(ConnectionFacts {
                number: 1,
                listener: 0,
                peer: Address::Ip("127.0.0.1:50000".parse().expect("an address")),
                local: self.world.address(ADDRESS),
                transport: Cell::new(None),
                started: self.world.now(),
            }),
            listener: 0,
            connection_requests: 1,
            message,
            pipelined: false,
        };
        Request::new(arrival, &self.local).expect("the listener is there")
    }

    /// `STATUS [-> LOCATION] TYPE [close] CONTENT`, as a client would see it.
    fn show(&self, is_head: bool, response: Response<FileOf<SimEngine>>) -> String {
        let mut shown = format!("< {}", response.status.on_the_wire().0);
        if let Some(location) = &response.location {
            shown += &format!(" -> {}", String::from_utf8_lossy(location));
        }
        let kind = response.content_type.as_deref().unwrap_or(b"-");
        let kind = String::from_utf8_lossy(kind);
        shown += &format!(" {kind}");
        if response.close {
            shown += " close";
        }
        let text = if is_head || response.status.has_no_content() {
            String::new()
        } else {
            let content = whole(response, &self.local);
            String::from_utf8(content).expect("the files are text")
        };
        if text.starts_with("<html>") {
            shown += " (page)";
        } else {
            shown += &format!(" \"{}\"", text.replace('\n', "\\n"));
        }
        shown.push('\n');
        shown
    }
}

/// Level and message of an error log line, without nginx's details of the request.
fn message_of(line: &str) -> String {
    let (_, rest) = line.split_once('[').expect("a level");
    let (level, rest) = rest.split_once("] ").expect("a level");
    let (_, message) = rest.split_once(": *1 ").expect("the connection's number");
    let (message, _) = message.rsplit_once(", client: ").expect("a client");
    format!("{level} {message}")
}
