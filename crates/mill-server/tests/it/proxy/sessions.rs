//! `sticky`: requests of a session go to one server.

use super::origin::{self, Act, Seen, ok, send};
use crate::server::{ADDRESS, SECOND, Server, in_http};
use mill_sim::world::World;
use std::rc::Rc;

const ORIGINS: [&str; 3] = ["10.0.1.1:80", "10.0.1.2:80", "10.0.1.3:80"];

/// `md5sum` of the addresses.
const DIGESTS: [&str; 3] = [
    "37d5794d68cab44464cd44a7f733e346",
    "a9ee46035e87212fe4711528cc1ff431",
    "8c82aa13a921a2aea810f446ee298406",
];

/// Two workers before origins whose answers tell their numbers, from 1.
struct Proxy {
    server: Server,
    seen: Vec<Rc<Seen>>,
}

fn text(upstream: &str) -> String {
    in_http(&format!(
        "upstream app {{ {upstream} }}
         server {{ listen {ADDRESS}; error_page 502 /error.txt; location = /error.txt {{ return 200 e; }}
         location / {{ proxy_pass http://app; }} }}"
    ))
}

impl Proxy {
    fn new(upstream: &str) -> Self {
        Self::with_script(upstream, |origin, _| vec![ok(&origin.to_string())])
    }

    fn with_script(upstream: &str, script: fn(usize, &str) -> Vec<Act>) -> Self {
        let mut server = Server::configured(World::new(5), &text(upstream), 2);
        let mut seen = Vec::new();
        for (index, address) in ORIGINS.iter().enumerate() {
            let act = move |_, request: &str| script(index + 1, request);
            let (turn, requests) = origin::start(&server.world, address, act);
            server.add_peer(turn);
            seen.push(requests);
        }
        Self { server, seen }
    }

    fn adopt(&mut self, upstream: &str) {
        self.server.adopt(&text(upstream));
        self.server.run();
    }

    /// The answer to a request for `target` with this field line, on a connection of its own.
    fn get(&mut self, target: &str, field: &str) -> String {
        let field = if field.is_empty() {
            String::new()
        } else {
            format!("{field}\r\n")
        };
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{field}\r\n");
        String::from_utf8(self.server.ask(&request)).expect("answers are text")
    }

    /// The origin that has answered.
    fn origin(&mut self, target: &str, field: &str) -> String {
        super::content(&self.get(target, field)).to_owned()
    }
}

/// The values of `Set-Cookie`.
fn cookies(answer: &str) -> Vec<&str> {
    let lines = answer.lines();
    lines
        .filter_map(|line| line.strip_prefix("Set-Cookie: "))
        .collect()
}

const SERVERS: &str = "server 10.0.1.1; server 10.0.1.2; server 10.0.1.3;";

#[test]
fn a_cookie_names_the_server_in_every_answer() {
    let mut proxy = Proxy::new(&format!("{SERVERS} sticky cookie srv;"));
    for number in [0, 2, 1, 1] {
        let cookie = format!("srv={}", DIGESTS[number]);
        let answer = proxy.get("/", &format!("Cookie: a=b; {cookie}"));
        assert_eq!(cookies(&answer), [&cookie[..]]);
        assert_eq!(super::content(&answer), (number + 1).to_string());
    }
    for field in ["", "Cookie: srv=", "Cookie: srv=unknown"] {
        let answer = proxy.get("/", field);
        let origin: usize = super::content(&answer).parse().expect("a number");
        assert_eq!(cookies(&answer), [format!("srv={}", DIGESTS[origin - 1])]);
    }
}

#[test]
fn a_cookie_has_its_attributes_in_the_order_of_nginx() {
    let check = |parameters: &str, expected: &str| {
        let upstream = format!("server 10.0.1.1 route=a; sticky cookie srv {parameters};");
        let mut proxy = Proxy::new(&upstream);
        let answer = proxy.get("/?s=Lax&d=.b.org", "");
        assert_eq!(cookies(&answer), [format!("srv=a{expected}")]);
    };
    check(
        "path=/x secure httponly domain=.a.org",
        "; domain=.a.org; httponly; secure; path=/x",
    );
    check("samesite=lax expires=max", MAX_LAX);
    check(
        "attribute=Partitioned path=/ attribute=Priority=High",
        "; path=/; Partitioned; Priority=High",
    );
    check("samesite=$arg_s", "; samesite=Lax");
    check("samesite=$arg_none", "");
    check(
        "samesite=$arg_d domain=$arg_d",
        "; domain=.b.org; samesite=strict",
    );
    check("domain=$arg_none", "");
    // The simulated clock begins at this date.
    check(
        "expires=1h",
        "; expires=Thu, 01-Jan-26 01:00:00 GMT; max-age=3600",
    );
}

const MAX_LAX: &str = "; expires=Thu, 31-Dec-37 23:55:55 GMT; max-age=315360000; samesite=lax";

#[test]
fn a_session_moves_when_its_server_fails_and_an_error_page_names_the_last_one() {
    let script = |origin: usize, _: &str| match origin {
        1 => vec![ok("1")],
        _ => vec![Act::Reset],
    };
    let servers = "server 10.0.1.1 route=a; server 10.0.1.2 route=b max_fails=0;";
    let mut proxy = Proxy::with_script(&format!("{servers} sticky cookie srv;"), script);
    let answer = proxy.get("/", "Cookie: srv=b");
    assert_eq!(
        (cookies(&answer), super::content(&answer)),
        (vec!["srv=a"], "1")
    );
    assert_eq!(
        proxy.seen[1].requests.borrow().len(),
        1,
        "it was tried first"
    );
    let servers = "server 10.0.1.2 route=b; server 10.0.1.3 route=c; sticky cookie srv;";
    let mut proxy = Proxy::with_script(servers, script);
    let answer = proxy.get("/", "Cookie: srv=c");
    assert_eq!(
        (cookies(&answer), super::content(&answer)),
        (vec!["srv=b"], "e")
    );
}

#[test]
fn a_draining_server_keeps_its_sessions_and_gets_no_new_ones() {
    let servers =
        "server 10.0.1.1 route=a drain; server 10.0.1.2 route=b; server 10.0.1.3 route=c down;";
    let mut proxy = Proxy::new(&format!("{servers} sticky cookie srv;"));
    for _ in 0..4 {
        assert_eq!(proxy.origin("/", ""), "2");
        assert_eq!(proxy.origin("/", "Cookie: srv=a"), "1");
        assert_eq!(proxy.origin("/", "Cookie: srv=c"), "2", "it is down");
    }
}

#[test]
fn a_route_is_the_first_variable_with_a_value() {
    let servers = "server 10.0.1.1 route=a; server 10.0.1.2 route=b; server 10.0.1.3;";
    let mut proxy = Proxy::new(&format!("{servers} sticky route $cookie_r $arg_r;"));
    for _ in 0..2 {
        assert_eq!(proxy.origin("/?r=b", ""), "2");
        assert_eq!(proxy.origin("/?r=b", "Cookie: r=a"), "1");
        let answer = proxy.get(&format!("/?r={}", DIGESTS[2]), "Cookie: r=");
        assert_eq!((cookies(&answer), super::content(&answer)), (vec![], "3"));
    }
}

const LEARN: &str = "sticky learn create=$upstream_cookie_id lookup=$cookie_id lookup=$arg_id";

/// Each origin begins the session that the request's field `New` names.
fn begin_session(origin: usize, request: &str) -> Vec<Act> {
    let mut lines = request.lines();
    let new = lines.find_map(|line| line.strip_prefix("New: "));
    let cookie = new.map(|name| format!("Set-Cookie: id={name}\r\n"));
    let cookie = cookie.unwrap_or_default();
    vec![send(&format!(
        "HTTP/1.1 200 OK\r\n{cookie}Content-Length: 1\r\n\r\n{origin}"
    ))]
}

fn learning(parameters: &str) -> Proxy {
    Proxy::with_script(&format!("{SERVERS} {LEARN} {parameters};"), begin_session)
}

#[test]
fn all_workers_know_the_sessions_that_answers_begin() {
    for header in ["", " header"] {
        let mut proxy = learning(&format!("zone=z:1m{header}"));
        let first = proxy.origin("/", "New: s1");
        let second = proxy.origin("/", "New: s2");
        assert_ne!(first, second);
        for _ in 0..4 {
            assert_eq!(proxy.origin("/", "Cookie: id=s1"), first);
            assert_eq!(proxy.origin("/?id=s2", ""), second);
        }
        let unknown: Vec<_> = (0..6).map(|_| proxy.origin("/?id=s3", "")).collect();
        assert!(
            unknown.iter().any(|origin| *origin != unknown[0]),
            "{unknown:?}"
        );
    }
}

#[test]
fn sessions_are_known_after_a_reload_and_end_when_they_are_not_used() {
    let mut proxy = learning("zone=z:1m timeout=10s");
    let first = proxy.origin("/", "New: s1");
    proxy.adopt(&format!("{SERVERS} {LEARN} zone=z:2m timeout=10s;"));
    for round in 1..4 {
        proxy.server.run_to(SECOND * (9 * round));
        assert_eq!(proxy.origin("/?id=s1", ""), first);
    }
    proxy.server.run_to(SECOND * 50);
    let origins: Vec<_> = (0..3).map(|_| proxy.origin("/?id=s1", "")).collect();
    assert!(origins.iter().any(|origin| *origin != first), "{origins:?}");
}

#[test]
fn a_session_stays_at_the_server_that_took_it_over() {
    let mut proxy = learning("zone=z:1m");
    let first = proxy.origin("/", "New: s1");
    let gone = format!("server 10.0.1.{first};");
    let down = SERVERS.replace(&gone, &format!("server 10.0.1.{first} down;"));
    proxy.adopt(&format!("{down} {LEARN} zone=z:1m;"));
    let other = proxy.origin("/?id=s1", "");
    assert_ne!(other, first);
    proxy.adopt(&format!("{SERVERS} {LEARN} zone=z:1m;"));
    for _ in 0..3 {
        assert_eq!(proxy.origin("/?id=s1", ""), other);
    }
}
