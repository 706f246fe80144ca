//! Files, indexes, listings and filters over simulated files: what a request is answered with, field by field. The
//! expectations are nginx 1.22.1's answers.

use mill_config::{Memory, Options, load};
use mill_http::date::imf_fixdate;
use mill_http::h1::parse::{Parsed, parse_request};
use mill_http::limits::HeadRules;
use mill_metrics::Published;
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use mill_runtime::files::Files;
use mill_runtime::scheduler::Scheduler;
use mill_server::local::{Environment, FileOf, Local, Shared};
use mill_server::log::LogSender;
use mill_server::request::{self, Arrival, ConnectionFacts, Message, Outcome, Request};
use mill_server::response::{Content, Piece, Response};
use mill_server::site::Site;
use mill_sim::engine::SimEngine;
use mill_sim::world::World;
use std::cell::Cell;
use std::io::Read;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// One configuration over a small site.
struct Server {
    world: World,
    local: Rc<Local<SimEngine>>,
    logs: LogSender,
}

impl Server {
    /// `directives` stand in a `server` block.
    fn new(directives: &str) -> Self {
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
            counters: Arc::from([Published::new()]),
        };
        let scheduler = Scheduler::new(now, wall_clock);
        let site = Arc::new(Site::new(config, 1));
        let local = Local::new(engine, scheduler, site, shared);
        Self { world, local, logs }
    }

    /// Asks for `METHOD TARGET | FIELD: VALUE | …` and compares `STATUS | FIELD: VALUE | … | CONTENT`. `{date}` stands
    /// for the files' date.
    fn check(&self, asked: &str, expected: &str) {
        let date = imf_fixdate(self.local.scheduler.wall_clock().seconds);
        let date = std::str::from_utf8(&date).expect("a date is text");
        assert_eq!(self.ask(asked), expected.replace("{date}", date), "{asked}");
    }

    fn ask(&self, asked: &str) -> String {
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
        let mut request = Request::new(arrival, &self.local).expect("the listener is there");
        match done(request::handle(&mut request, &self.local)) {
            Outcome::Respond(response) => self.show(response),
            Outcome::Close => String::from("closed"),
        }
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
        let content = self.content(response.content);
        if !is_page && !content.is_empty() {
            parts.push(text(&content));
        }
        parts.join(" | ")
    }

    /// The content, unzipped if the answer was to be compressed.
    fn content(&self, content: Content<FileOf<SimEngine>>) -> Vec<u8> {
        match content {
            Content::Absent => Vec::new(),
            Content::Bytes(bytes, range) => match bytes.get(range).expect("a range of it") {
                zipped @ [0x1f, 0x8b, ..] => {
                    let mut content = Vec::new();
                    let mut decoder = flate2::read::GzDecoder::new(zipped);
                    decoder.read_to_end(&mut content).expect("whole gzip");
                    content
                }
                bytes => bytes.to_vec(),
            },
            Content::File { file, offset, len } => self.read(&file, offset, len),
            Content::Gzip { file, len, .. } => self.read(&file, 0, len),
            Content::Pieces(pieces) => {
                let piece = |piece| match piece {
                    Piece::Bytes(bytes, range) => bytes.get(range).unwrap_or_default().to_vec(),
                    Piece::File { file, offset, len } => self.read(&file, offset, len),
                };
                pieces.into_iter().flat_map(piece).collect()
            }
        }
    }

    fn read(&self, file: &FileOf<SimEngine>, offset: u64, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(len).expect("a small file")];
        let read = done(self.local.engine.files().read_at(file, offset, &mut bytes));
        assert_eq!(read, Ok(bytes.len()));
        bytes
    }

    /// The last line of the error log, from its level on and without what is appended about the request.
    fn last_error(&self) -> String {
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

/// What comes of a future that never waits: these files answer at once.
fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing makes this wait"),
    }
}

#[test]
fn a_file_is_answered_with_its_validators_and_type() {
    let server = Server::new("");
    let validators = "modified {date} | \"6955b900-a\"";
    server.check(
        "GET /a.txt",
        &format!("200 | text/plain | {validators} | Accept-Ranges: bytes | 0123456789"),
    );
    server.check(
        "GET /empty.txt",
        "200 | text/plain | modified {date} | \"6955b900-0\" | Accept-Ranges: bytes",
    );
    server.check("POST /a.txt", "405 | text/html");
    server.check("PUT /", "405 | text/html");
    server.check("GET /dir?a=b", "301 | text/html | http://a:8123/dir/?a=b");
}

#[test]
fn what_is_not_there_is_404_and_logged() {
    let server = Server::new("location /quiet { log_not_found off; }");
    let check = |target: &str, error: &str| {
        server.check(&format!("GET {target}"), "404 | text/html");
        assert_eq!(server.last_error(), error);
    };
    check(
        "/nope",
        "error open() \"/srv/nope\" failed (2: No such file or directory)",
    );
    check(
        "/a.txt/b",
        "error open() \"/srv/a.txt/b\" failed (20: Not a directory)",
    );
    check(
        "/nope/",
        "error \"/srv/nope/index.html\" is not found (2: No such file or directory)",
    );
    check(
        "/a.txt/",
        "error \"/srv/a.txt/index.html\" is not found (20: Not a directory)",
    );
    let before = server.last_error();
    check("/quiet", &before);
    server.check("GET /none/", "403 | text/html");
    let forbidden = "error directory index of \"/srv/none/\" is forbidden";
    assert_eq!(server.last_error(), forbidden);
}

#[test]
fn an_alias_is_not_left_by_dots() {
    let server = Server::new("location /d { alias /srv/dir/; }");
    server.check("GET /d../a.txt", "404 | text/html");
    let error = "error \"/srv/dir/../a.txt\" leads out of its root";
    assert_eq!(server.last_error(), error);
}

#[test]
fn the_first_index_that_is_there_answers() {
    let check = |index: &str, target: &str, content: &str| {
        let server = Server::new(&format!("etag off; index {index};"));
        let answer = server.ask(&format!("GET {target}"));
        assert!(
            answer.ends_with(&format!(" | {content}")),
            "{index}: {answer}"
        );
    };
    check("index.html", "/dir/", "index");
    check("nope other.html index.html", "/dir/", "other");
    check("$arg_i index.html", "/dir/?i=other.html", "other");
    check("nope /a.txt", "/none/", "0123456789");
}

#[test]
fn gzip_static_sends_the_compressed_file_to_those_who_take_it() {
    let server = Server::new("gzip_static on; gzip_vary on; etag off;");
    let zipped = "200 | text/plain | modified {date} | vary | Content-Encoding: gzip | zipped";
    let plain = "200 | text/plain | modified {date} | vary | Accept-Ranges: bytes | plain";
    server.check("GET /z.txt | Accept-Encoding: gzip", zipped);
    server.check("GET /z.txt", plain);
    server.check("GET /z.txt | Accept-Encoding: gzip;q=0", plain);
    server.check(
        "GET /z.txt | Accept-Encoding: gzip | Range: bytes=0-1",
        zipped,
    );
    server.check(
        "GET /a.txt | Accept-Encoding: gzip",
        "200 | text/plain | modified {date} | Accept-Ranges: bytes | 0123456789",
    );
    let always = Server::new("gzip_static always; etag off;");
    always.check("GET /z.txt", &zipped.replace(" | vary", ""));
}

#[test]
fn compression_takes_what_is_worth_it() {
    let server = Server::new(
        "gzip on; gzip_vary on;
        location = /text { default_type text/html; return 200 \"hello, hello, hello, hello\"; }
        location = /short { default_type text/html; return 200 \"hello\"; }",
    );
    let page = "<p>the mill stream</p>".repeat(100);
    let zipped = format!(
        "200 | text/html | modified {{date}} | vary | W/\"6955b900-898\" | Content-Encoding: gzip | {page}"
    );
    let plain = format!(
        "200 | text/html | modified {{date}} | vary | \"6955b900-898\" | Accept-Ranges: bytes | {page}"
    );
    server.check("GET /long.html | Accept-Encoding: gzip", &zipped);
    server.check("GET /long.html", &plain);
    server.check(
        "GET /long.html | Accept-Encoding: gzip | Via: 1.1 b",
        &plain,
    );
    server.check(
        "GET /text | Accept-Encoding: gzip",
        "200 | text/html | vary | Content-Encoding: gzip | hello, hello, hello, hello",
    );
    server.check(
        "GET /short | Accept-Encoding: gzip",
        "200 | text/html | hello",
    );
    server.check(
        "GET /nope | Accept-Encoding: gzip",
        "404 | text/html | vary | Content-Encoding: gzip",
    );
}

#[test]
fn conditions_are_judged_on_what_would_be_sent() {
    let server = Server::new("add_header X-A a; add_header X-B b always; expires epoch;");
    let added =
        "Expires: Thu, 01 Jan 1970 00:00:01 GMT | Cache-Control: no-cache | X-A: a | X-B: b";
    let not_modified = format!("304 | modified {{date}} | \"6955b900-a\" | {added}");
    server.check(
        "GET /a.txt | If-None-Match: W/\"6955b900-a\"",
        &not_modified,
    );
    server.check("GET /a.txt | If-None-Match: *", &not_modified);
    server.check("GET /a.txt | If-Match: \"x\"", "412 | text/html | X-B: b");
    server.check(
        "GET /a.txt | If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
        "412 | text/html | X-B: b",
    );
    server.check("GET /nope | If-None-Match: *", "404 | text/html | X-B: b");
}

#[test]
fn a_failed_condition_gets_its_error_page() {
    let server = Server::new("etag off; error_page 412 416 /z.txt;");
    let page = |status: &str| format!("{status} | text/plain");
    server.check("GET /a.txt | If-Match: \"x\"", &page("412"));
    server.check(
        "GET /a.txt | Range: bytes=10-",
        "416 | text/plain | Content-Range: bytes */10",
    );
}

#[test]
fn ranges_are_cut_out() {
    let server = Server::new("etag off; add_header X-A a; add_header X-B b always;");
    let whole =
        "200 | text/plain | modified {date} | X-A: a | X-B: b | Accept-Ranges: bytes | 0123456789";
    let part =
        "206 | text/plain | modified {date} | X-A: a | X-B: b | Content-Range: bytes 2-4/10 | 234";
    server.check("GET /a.txt | Range: bytes=2-4", part);
    server.check("GET /a.txt | Range: lines=2-4", whole);
    server.check("GET /a.txt | Range: bytes=2-4 | If-Range: \"x\"", whole);
    server.check(
        "GET /a.txt | Range: bytes=10-",
        "416 | text/html | X-A: a | X-B: b | Content-Range: bytes */10",
    );
    let parts = server.ask("GET /a.txt | Range: bytes=0-0,9-");
    let (head, content) = parts.split_once("\r\n--").expect("a boundary");
    assert!(
        head.starts_with("206 | multipart/byteranges; boundary="),
        "{parts}"
    );
    let first = "\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-0/10\r\n\r\n0\r\n--";
    assert!(content.contains(first), "{parts}");
    let none = Server::new("etag off; max_ranges 0;");
    none.check(
        "GET /a.txt | Range: bytes=2-4",
        "200 | text/plain | modified {date} | 0123456789",
    );
}

#[test]
fn a_line_of_add_header_replaces_what_the_answer_has() {
    let server = Server::new(
        "add_header ETag \"\\\"v1\\\"\"; add_header last-modified today; add_trailer X-T $uri;",
    );
    server.check(
        "GET /a.txt",
        "200 | text/plain | \"v1\" | last-modified: today | Accept-Ranges: bytes | X-T: /a.txt | 0123456789",
    );
}

#[test]
fn a_directory_is_listed() {
    let server = Server::new("autoindex on; autoindex_format json;");
    let date = "Thu, 01 Jan 2026 00:00:00 GMT";
    let listing = format!(
        "[\r\n{{ \"name\":\"other.html\", \"type\":\"file\", \"mtime\":\"{date}\", \"size\":5 }}\r\n]"
    );
    server.world.files().remove("/srv/dir/index.html");
    server.check("GET /dir/", &format!("200 | application/json | {listing}"));
    server.check("POST /dir/", "403 | text/html");
    server.check("GET /nope/", "404 | text/html");
    let page = Server::new("autoindex on; autoindex_localtime on;");
    let answer = page.ask("GET /none/");
    let expected = "200 | text/html | <html>\r\n<head><title>Index of /none/</title></head>\r\n";
    assert!(answer.starts_with(expected), "{answer}");
    page.world.files().write("/srv/none/f", "x");
    let answer = page.ask("GET /none/");
    assert!(
        answer.contains(" 01-Jan-2026 01:00                   1\r\n"),
        "{answer}"
    );
    let call = Server::new("autoindex on; autoindex_format jsonp;");
    let answer = call.ask("GET /none/?callback=f");
    assert_eq!(
        answer,
        "200 | application/javascript | /* callback */\r\nf([\r\n]);"
    );
    call.check("GET /none/?callback=f()", "400 | text/html");
    assert_eq!(
        call.last_error(),
        "info client sent invalid callback name: \"f()\""
    );
}

#[test]
fn links_are_refused_where_they_are_disabled() {
    let check = |directives: &str, status: &str| {
        let server = Server::new(directives);
        server.world.files().link("/srv/link.txt", "/srv/a.txt");
        let answer = server.ask("GET /link.txt");
        assert!(answer.starts_with(status), "{directives}: {answer}");
    };
    check("", "200");
    check("disable_symlinks on;", "403");
    check("disable_symlinks on from=/srv/link.txt;", "200");
    check("disable_symlinks on from=$document_root;", "403");
    check("disable_symlinks if_not_owner;", "200");
}

#[test]
fn stub_status_is_for_reading_only() {
    let server = Server::new("location /s { stub_status; }");
    let answer = server.ask("GET /s");
    assert!(
        answer.starts_with("200 | text/plain | Active connections: "),
        "{answer}"
    );
    server.check("POST /s", "405 | text/html");
}
