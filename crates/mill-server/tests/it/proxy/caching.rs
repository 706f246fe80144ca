//! Answers that are kept, and what is taken of them.

/// Contents in compressed form.
mod compressed;
/// RFC 9111, requirement by requirement.
mod conformance;
/// What is kept in a folder.
mod disk;
/// Answers that come while others wait for them.
mod filling;
/// Answers that become useless together.
mod groups;
/// Parts of answers.
mod parts;
/// RFC 9111 and its kin, requirement by requirement.
mod requirements;
/// What RFC 9111 says, where nginx says something else.
mod rules;
/// Answers in pieces.
mod slices;
/// What is stale.
mod stale;
/// What is told of caches.
mod told;
/// What is still valid.
mod validation;

use super::origin::{self, Act, Seen, ok, send};
use super::{ORIGIN, content, get};
use crate::server::{ADDRESS, Server, in_http};
use mill_sim::world::World;
use std::rc::Rc;
use std::time::Duration;

/// A proxy with a cache before one origin.
struct Cached {
    server: Server,
    seen: Rc<Seen>,
}

impl Cached {
    fn new(directives: &str, script: impl Fn(usize, &str) -> Vec<Act> + 'static) -> Self {
        Self::with_workers(1, directives, script)
    }

    fn with_workers(
        workers: usize,
        directives: &str,
        script: impl Fn(usize, &str) -> Vec<Act> + 'static,
    ) -> Self {
        Self::with_path(workers, MEMORY, directives, script)
    }

    /// With these parameters of `proxy_cache_path`.
    fn with_path(
        workers: usize,
        path: &str,
        directives: &str,
        script: impl Fn(usize, &str) -> Vec<Act> + 'static,
    ) -> Self {
        let mut server = Server::configured(World::new(1), &text(path, directives), workers);
        let (turn, seen) = origin::start(&server.world, ORIGIN, script);
        server.add_peer(turn);
        Self { server, seen }
    }

    /// The answer to a request on a connection of its own.
    fn ask(&mut self, request: &str) -> String {
        let client = self.server.connect();
        client.send(request);
        self.server.run();
        String::from_utf8_lossy(&client.received()).into_owned()
    }

    /// What the cache says of a request for this path.
    fn outcome(&mut self, path: &str) -> String {
        let answer = self.ask(&get(path));
        field(&answer, "X-Cache").to_owned()
    }

    fn pass(&mut self, seconds: u64) {
        let elapsed = self.server.world.elapsed() + Duration::from_secs(seconds);
        self.server.run_to(elapsed);
    }

    fn asked(&self) -> usize {
        self.seen.requests.borrow().len()
    }
}

/// The zone in memory alone.
const MEMORY: &str = "/cache keys_zone=one:1m memory=8m disk=off";

fn text(path: &str, directives: &str) -> String {
    in_http(&format!(
        "proxy_cache_path {path};
         upstream app {{ server {ORIGIN}; }}
         log_format cache '$status $upstream_cache_status $cache_decision';
         server {{
             listen {ADDRESS} reuseport; access_log /access.log cache;
             proxy_cache one; proxy_http_version 1.1; add_header X-Cache $upstream_cache_status always;
             {directives}
         }}"
    ))
}

fn field<'a>(answer: &'a str, name: &str) -> &'a str {
    let mut lines = answer.lines();
    lines
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .unwrap_or("")
}

/// An answer with these fields and this content.
fn with(fields: &str, content: &str) -> Act {
    let len = content.len();
    send(&format!(
        "HTTP/1.1 200 OK\r\n{fields}Content-Length: {len}\r\n\r\n{content}"
    ))
}

const ALL: &str = "location / { proxy_pass http://app; proxy_cache_valid 200 10s; }";

#[test]
fn an_answer_is_taken_from_the_cache_until_its_time_is_over() {
    let mut cached = Cached::new(ALL, |number, _| vec![ok(&format!("answer {number}"))]);
    let first = cached.ask(&get("/a"));
    assert_eq!(
        (field(&first, "X-Cache"), content(&first)),
        ("MISS", "answer 0")
    );
    // Many: those after the first few are answered before any phase runs.
    for _ in 0..5 {
        let again = cached.ask(&get("/a"));
        assert_eq!(
            (field(&again, "X-Cache"), content(&again)),
            ("HIT", "answer 0")
        );
    }
    assert_eq!(cached.outcome("/b"), "MISS");
    assert_eq!(cached.outcome("/a?b"), "MISS");
    cached.pass(12);
    let late = cached.ask(&get("/a"));
    assert_eq!(
        (field(&late, "X-Cache"), content(&late)),
        ("EXPIRED", "answer 3")
    );
    assert_eq!(cached.outcome("/a"), "HIT");
    assert_eq!(cached.asked(), 4);
}

#[test]
fn nginxs_rules_say_which_answers_are_kept() {
    for (directives, fields, is_kept) in [
        ("", "Cache-Control: max-age=5\r\n", true),
        ("", "Cache-Control: max-age=0\r\n", false),
        ("", "Cache-Control: private\r\n", false),
        ("", "Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\n", false),
        (
            "",
            "X-Accel-Expires: 5\r\nCache-Control: no-store\r\n",
            true,
        ),
        ("", "", false),
        ("proxy_cache_valid 200 5s;", "", true),
        ("proxy_cache_valid 404 5s;", "", false),
        ("proxy_cache_valid any 5s;", "", true),
        ("proxy_cache_valid 5s;", "Set-Cookie: a=b\r\n", false),
        (
            "proxy_cache_valid 5s; proxy_ignore_headers Set-Cookie;",
            "Set-Cookie: a=b\r\n",
            true,
        ),
        ("proxy_cache_valid 5s;", "Vary: *\r\n", false),
        ("proxy_cache_valid 5s; proxy_no_cache $arg_x;", "", false),
        ("proxy_cache_valid 5s; proxy_no_cache $arg_y 0;", "", true),
        (
            "proxy_cache_valid 5s; proxy_cache_bypass $arg_x;",
            "",
            false,
        ),
        ("proxy_cache_valid 5s; cache_object_max 3;", "", false),
    ] {
        let text = format!("location / {{ proxy_pass http://app; {directives} }}");
        let mut cached = Cached::new(&text, move |_, _| vec![with(fields, "1234")]);
        cached.outcome("/?x=1");
        let second = cached.outcome("/?x=1");
        assert_eq!(second == "HIT", is_kept, "{directives} {fields}: {second}");
        assert_eq!(cached.asked(), if is_kept { 1 } else { 2 });
    }
}

#[test]
fn a_head_is_answered_by_what_a_get_has_brought_and_brings_it() {
    let mut cached = Cached::new(ALL, |_, _| vec![ok("0123456789")]);
    let head = cached.ask("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(field(&head, "Content-Length"), "10");
    assert_eq!(content(&head), "");
    assert!(cached.seen.requests.borrow()[0].starts_with("GET /a "));
    let whole = cached.ask(&get("/a"));
    assert_eq!(
        (field(&whole, "X-Cache"), content(&whole)),
        ("HIT", "0123456789")
    );
    let head = cached.ask("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((field(&head, "X-Cache"), content(&head)), ("HIT", ""));
}

#[test]
fn ranges_and_conditions_are_answered_from_the_whole() {
    let fields = "Accept-Ranges: bytes\r\nETag: \"v1\"\r\n";
    let mut cached = Cached::new(ALL, move |_, _| vec![with(fields, "0123456789")]);
    let ask = |cached: &mut Cached, line: &str| {
        cached.ask(&format!("GET /a HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n"))
    };
    let part = ask(&mut cached, "Range: bytes=2-4");
    assert!(part.starts_with("HTTP/1.1 206"), "{part}");
    assert_eq!(content(&part), "234");
    let asked = cached.seen.requests.borrow()[0].clone();
    assert!(
        !asked.contains("Range"),
        "the origin is asked for all: {asked}"
    );
    let part = ask(&mut cached, "Range: bytes=8-");
    assert_eq!(
        (field(&part, "Content-Range"), content(&part)),
        ("bytes 8-9/10", "89")
    );
    let parts = ask(&mut cached, "Range: bytes=0-0,9-9");
    assert!(
        parts.contains("Content-Range: bytes 9-9/10\r\n\r\n9"),
        "{parts}"
    );
    let same = ask(&mut cached, "If-None-Match: \"v1\"");
    assert!(same.starts_with("HTTP/1.1 304"), "{same}");
    let other = ask(&mut cached, "If-None-Match: \"v2\"");
    assert_eq!(content(&other), "0123456789");
    assert_eq!(cached.asked(), 1);
}

#[test]
fn what_vary_names_tells_answers_apart() {
    let mut cached = Cached::new(ALL, |_, request| {
        let language = field(request, "Accept-Language").to_owned();
        vec![with("Vary: Accept-Language\r\n", &language)]
    });
    let mut ask = |language: &str| {
        let lines = format!("GET /a HTTP/1.1\r\nHost: a\r\nAccept-Language: {language}\r\n\r\n");
        let answer = cached.ask(&lines);
        (
            field(&answer, "X-Cache").to_owned(),
            content(&answer).to_owned(),
        )
    };
    for (language, outcome) in [("de", "MISS"), ("en", "MISS"), ("de", "HIT"), ("en", "HIT")] {
        assert_eq!(ask(language), (outcome.to_owned(), language.to_owned()));
    }
}

#[test]
fn a_purge_is_in_effect_at_once_also_for_answers_that_workers_keep() {
    let directives = "cache_tags Surrogate-Key; proxy_cache_valid 10s;
         proxy_cache_key $uri;
         location / { proxy_pass http://app; }
         location /purge/ { proxy_pass http://app/; proxy_cache_purge 1; proxy_cache_key $uri; rewrite ^/purge(.*)$ $1 break; }";
    let mut cached = Cached::new(directives, |_, request| {
        let tags = if request.contains("/a/") {
            "first all"
        } else {
            "all"
        };
        vec![with(&format!("Surrogate-Key: {tags}\r\n"), "x")]
    });
    let paths = ["/a/1", "/a/2", "/b/1"];
    let fill = |cached: &mut Cached| {
        for path in paths {
            cached.outcome(path);
            for _ in 0..3 {
                assert_eq!(cached.outcome(path), "HIT", "{path}");
            }
        }
    };
    for (request, gone) in [
        (
            "GET /purge/a/1 HTTP/1.1\r\nHost: a\r\n\r\n",
            [true, false, false],
        ),
        (
            "GET /purge/a/* HTTP/1.1\r\nHost: a\r\n\r\n",
            [true, true, false],
        ),
        (
            "GET /purge/x HTTP/1.1\r\nHost: a\r\nSurrogate-Key: first\r\n\r\n",
            [true, true, false],
        ),
        (
            "GET /purge/x HTTP/1.1\r\nHost: a\r\nSurrogate-Key: no all\r\n\r\n",
            [true, true, true],
        ),
    ] {
        fill(&mut cached);
        let answer = cached.ask(request);
        assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
        for (path, is_gone) in paths.into_iter().zip(gone) {
            let expected = if is_gone { "MISS" } else { "HIT" };
            assert_eq!(cached.outcome(path), expected, "{request} {path}");
        }
    }
}

#[test]
fn an_answer_is_kept_from_the_request_on_that_min_uses_says() {
    let directives =
        "location / { proxy_pass http://app; proxy_cache_valid 10s; proxy_cache_min_uses 3; }";
    let mut cached = Cached::new(directives, |_, _| vec![ok("x")]);
    let outcomes = [(); 5].map(|()| cached.outcome("/a"));
    assert_eq!(outcomes, ["MISS", "MISS", "MISS", "HIT", "HIT"]);
}

#[test]
fn only_the_methods_that_are_named_are_answered_from_the_cache() {
    let post = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx";
    let mut cached = Cached::new(ALL, |_, _| vec![ok("x")]);
    for _ in 0..2 {
        assert_eq!(field(&cached.ask(post), "X-Cache"), "");
    }
    let directives =
        format!("proxy_cache_methods POST; proxy_cache_key $request_method$uri; {ALL}");
    let mut cached = Cached::new(&directives, |_, _| vec![ok("x")]);
    assert_eq!(field(&cached.ask(post), "X-Cache"), "MISS");
    assert_eq!(field(&cached.ask(post), "X-Cache"), "HIT");
}

#[test]
fn an_answer_without_content_is_kept_with_its_head() {
    let directives = "location / { proxy_pass http://app; proxy_cache_valid 204 301 10s; }";
    for (status, fields) in [
        ("204 No Content", ""),
        ("301 Moved", "Location: /x\r\nContent-Length: 0\r\n"),
    ] {
        let mut cached = Cached::new(directives, move |_, _| {
            vec![send(&format!(
                "HTTP/1.1 {status}\r\n{fields}X-Own: y\r\n\r\n"
            ))]
        });
        for expected in ["MISS", "HIT", "HIT"] {
            let answer = cached.ask(&get("/a"));
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{answer}"
            );
            assert_eq!(
                (field(&answer, "X-Cache"), field(&answer, "X-Own")),
                (expected, "y")
            );
        }
    }
}

#[test]
fn an_answer_that_leads_elsewhere_keeps_no_request_waiting_for_another() {
    let directives =
        "location / { proxy_pass http://app; proxy_cache_valid 10s; proxy_cache_lock on; }
         location /b.txt { root /site; proxy_cache off; }";
    let mut cached = Cached::new(directives, |_, _| {
        vec![
            Act::Wait(Duration::from_secs(1)),
            send("HTTP/1.1 200 OK\r\nX-Accel-Redirect: /b.txt\r\nContent-Length: 0\r\n\r\n"),
        ]
    });
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let client = cached.server.connect();
            client.send(get("/a"));
            client
        })
        .collect();
    // One asks, the others ask together behind it.
    cached.pass(3);
    for client in clients {
        assert!(client.received().ends_with(b"file b\n"));
    }
}

#[test]
fn the_log_says_why_an_answer_was_no_hit() {
    let mut cached = Cached::new(ALL, |_, request| {
        let fields = if request.contains("/p") {
            "Cache-Control: private\r\n"
        } else {
            ""
        };
        vec![with(fields, "x")]
    });
    for path in ["/a", "/a", "/p"] {
        cached.outcome(path);
    }
    cached.pass(11);
    cached.outcome("/a");
    assert_eq!(
        cached.server.logs.lines("/access.log"),
        [
            "200 MISS uri-miss stored",
            "200 HIT hit",
            "200 MISS uri-miss not-stored=private",
            "200 EXPIRED stale stored",
        ]
    );
}

#[test]
fn a_directive_of_cache_control_may_have_no_effect() {
    let check = |ignored: &str, control: &str, expected: [&str; 2]| {
        let fields = format!("Cache-Control: {control}\r\n");
        let text = format!(
            "location / {{ proxy_pass http://app; proxy_cache_valid 200 10s; proxy_ignore_headers {ignored}; }}"
        );
        let mut cached = Cached::new(&text, move |_, _| vec![with(&fields, "x")]);
        let found = [cached.outcome("/a"), cached.outcome("/a")];
        assert_eq!(found, expected, "{ignored} {control}");
    };
    check("Vary", "no-store", ["MISS", "MISS"]);
    check("Cache-Control=no-store", "no-store", ["MISS", "HIT"]);
    check("Cache-Control=no-store", "no-cache", ["MISS", "MISS"]);
    check(
        "Cache-Control=no-store Cache-Control=private",
        "private, no-store",
        ["MISS", "HIT"],
    );
    check("Cache-Control=max-age", "max-age=0", ["MISS", "HIT"]);
}

#[test]
fn answers_to_other_methods_are_kept_where_it_is_asked() {
    let text = "location / { proxy_pass http://app; proxy_cache_valid 200 10s;
        proxy_cache_methods PROPFIND OPTIONS; proxy_cache_key $request_method$uri; }";
    let mut cached = Cached::new(text, |number, _| vec![ok(&number.to_string())]);
    let mut check = |method: &str, expected: [&str; 2]| {
        let request = get("/a").replace("GET", method);
        let found = [(); 2].map(|()| {
            let answer = cached.ask(&request);
            format!("{} {}", field(&answer, "X-Cache"), content(&answer))
        });
        assert_eq!(found, expected, "{method}");
    };
    check("PROPFIND", ["MISS 0", "HIT 0"]);
    check("OPTIONS", ["MISS 1", "HIT 1"]);
    check("GET", ["MISS 2", "HIT 2"]);
    check("MKCOL", [" 3", " 4"]);
}
