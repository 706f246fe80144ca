//! `health_check` and `match`: which servers get requests.

/// Probes in other protocols, on kept connections, and beyond limits.
mod probes;
/// New configurations, new servers, and the end.
mod reload;

use super::origin::{self, Act, Seen, ok, send};
use super::{ORIGIN, OTHER, content, get};
use crate::server::{ADDRESS, MS, SECOND, Server, in_http};
use mill_runtime::time::Duration;
use mill_sim::world::World;
use mill_upstream::peer::PeerState;
use mill_upstream::peer::load::HealthCheckCounts;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A proxy of two workers before two origins, which answer requests for `/` with their addresses.
struct Checked {
    server: Server,
    /// What each origin does with a probe, where that is not a page.
    probes: Rc<RefCell<BTreeMap<&'static str, Vec<Act>>>>,
    /// What both do with other requests, where that is not a page.
    page: Rc<RefCell<Vec<Act>>>,
    seen: BTreeMap<&'static str, Rc<Seen>>,
}

const GROUP: &str = "upstream app { server 10.0.0.2; server 10.0.0.3; }";

/// A configuration whose location has these parameters of `health_check`; `http` stands beside it.
fn configuration(group: &str, parameters: &str, http: &str) -> String {
    in_http(&format!(
        "{group} {http} server {{ listen {ADDRESS}; location / {{ proxy_pass http://app; health_check uri=/up {parameters}; }} }}"
    ))
}

impl Checked {
    fn new(parameters: &str, http: &str) -> Self {
        Self::configured(&configuration(GROUP, parameters, http))
    }

    fn configured(text: &str) -> Self {
        let mut checked = Self {
            server: Server::configured(World::new(1), text, 2),
            probes: Rc::default(),
            page: Rc::default(),
            seen: BTreeMap::new(),
        };
        for address in [ORIGIN, OTHER] {
            let (probes, page) = (Rc::clone(&checked.probes), Rc::clone(&checked.page));
            let (turn, seen) = origin::start(&checked.server.world, address, move |_, request| {
                let is_probe = request.contains(" /up ");
                let probes = probes.borrow();
                let page = Some(page.borrow().clone()).filter(|page| !page.is_empty());
                let acts = if is_probe {
                    probes.get(address).cloned()
                } else {
                    page
                };
                acts.unwrap_or_else(|| vec![ok(address)])
            });
            checked.server.add_peer(turn);
            checked.seen.insert(address, seen);
        }
        checked
    }

    /// From now on an origin does this with probes; nothing is its page again.
    fn set_probe(&self, origin: &'static str, acts: Vec<Act>) {
        let mut probes = self.probes.borrow_mut();
        if acts.is_empty() {
            probes.remove(origin);
        } else {
            probes.insert(origin, acts);
        }
    }

    fn set_page(&self, acts: Vec<Act>) {
        self.page.replace(acts);
    }

    fn run_to(&mut self, elapsed: Duration) {
        self.server.run_to(elapsed);
    }

    /// The contents of the answers to so many requests.
    fn ask(&mut self, count: usize) -> Vec<String> {
        let answers = (0..count).map(|_| {
            let answer = self.server.ask(&get("/"));
            content(&String::from_utf8_lossy(&answer)).to_owned()
        });
        answers.collect()
    }

    fn states(&self) -> Vec<PeerState> {
        let now = self.server.world.now();
        self.peers(|peer| peer.state(now))
    }

    fn counts(&self) -> Vec<HealthCheckCounts> {
        let now = self.server.world.now();
        self.peers(|peer| peer.load().counts(now).health_checks)
    }

    fn peers<T>(&self, of: impl Fn(&mill_upstream::peer::Peer) -> T) -> Vec<T> {
        let site = &self.server.site;
        let http = site.config.http.as_ref().expect("there is an http block");
        let group = site.upstreams.group(&http.upstreams[0]);
        let peers = group.expect("it is there").peers();
        peers.all().map(|peer| of(peer)).collect()
    }

    /// The probes that an origin has got.
    fn probes_of(&self, origin: &str) -> Vec<String> {
        let mut requests = self.seen[origin].requests.borrow().clone();
        requests.retain(|request| !request.starts_with("GET / "));
        requests
    }

    /// The lines of the error log that name a health check, without their time and process.
    fn log(&self) -> Vec<String> {
        let mut lines = self.server.error_log();
        lines.retain(|line| line.contains(", health check "));
        let text = |line: &String| {
            line.split_once("100#101: ")
                .map(|(_, text)| text.to_owned())
        };
        lines.iter().filter_map(text).collect()
    }
}

fn status(status: u16) -> Vec<Act> {
    vec![send(&format!(
        "HTTP/1.1 {status} S\r\nContent-Length: 0\r\n\r\n"
    ))]
}

const UP: PeerState = PeerState::Up;
const CHECKING: PeerState = PeerState::Checking;
const UNHEALTHY: PeerState = PeerState::Unhealthy;

#[test]
fn a_server_with_a_bad_status_gets_no_requests_until_it_passes() {
    let mut checked = Checked::new("interval=3", "");
    checked.run_to(SECOND);
    assert_eq!(checked.states(), [UP, UP]);
    checked.set_probe(ORIGIN, status(500));
    checked.run_to(2 * SECOND);
    assert_eq!(checked.ask(2), [ORIGIN, OTHER]);
    checked.run_to(4 * SECOND);
    assert_eq!(checked.states(), [UNHEALTHY, UP]);
    assert_eq!(checked.ask(3), [OTHER, OTHER, OTHER]);
    checked.set_probe(ORIGIN, Vec::new());
    checked.run_to(7 * SECOND);
    assert_eq!(checked.states(), [UP, UP]);
    assert!(checked.ask(3).contains(&ORIGIN.to_owned()));
    let probe = "health check \"\" of peer 10.0.0.2:80 in upstream \"app\"";
    let expected = [
        format!("peer is unhealthy while checking status code, {probe}"),
        format!("peer is healthy while checking status code, {probe}"),
    ];
    assert_eq!(checked.log(), expected);
    let counts = checked.counts()[0];
    assert_eq!((counts.checks, counts.fails, counts.unhealthy), (3, 1, 1));
    assert_eq!(counts.last_passed, Some(true));
}

#[test]
fn answers_to_clients_make_a_server_unhealthy_until_a_probe_passes() {
    let mut checked = Checked::new("interval=10 failover=500-599:3:2s", "");
    checked.run_to(SECOND);
    // Probes, which ask for another path, go on passing.
    checked.set_page(status(503));
    checked.ask(4);
    assert_eq!(checked.states(), [UP, UP]);
    checked.ask(1);
    assert_eq!(checked.states(), [UNHEALTHY, UP]);
    let text = "peer is unhealthy because of its answers with status 503";
    assert!(checked.server.has_logged(text));
    checked.set_page(Vec::new());
    assert_eq!(checked.ask(3), [OTHER, OTHER, OTHER]);
    checked.run_to(15 * SECOND);
    assert_eq!(checked.states(), [UP, UP]);
}

#[test]
fn so_many_fails_and_passes_in_a_row_decide() {
    let mut checked = Checked::new("interval=1 fails=3 passes=2", "");
    let times = |checked: &mut Checked, acts: Vec<Act>, count: u32| {
        checked.set_probe(ORIGIN, acts);
        let until = checked.server.world.elapsed() + count * SECOND;
        checked.run_to(until);
        checked.states()[0]
    };
    checked.run_to(SECOND / 2);
    assert_eq!(times(&mut checked, status(404), 2), UP);
    assert_eq!(times(&mut checked, status(200), 1), UP);
    assert_eq!(times(&mut checked, status(404), 2), UP);
    assert_eq!(times(&mut checked, status(404), 1), UNHEALTHY);
    assert_eq!(times(&mut checked, status(399), 1), UNHEALTHY);
    assert_eq!(times(&mut checked, status(400), 1), UNHEALTHY);
    assert_eq!(times(&mut checked, status(200), 2), UP);
}

#[test]
fn without_a_healthy_server_no_request_is_passed_on() {
    let mut checked = Checked::new("", "");
    checked.set_probe(ORIGIN, status(503));
    checked.set_probe(OTHER, status(503));
    checked.run_to(SECOND);
    assert_eq!(checked.states(), [UNHEALTHY, UNHEALTHY]);
    let answer = checked.server.ask(&get("/"));
    assert!(answer.starts_with(b"HTTP/1.1 502 "));
    let text = "no live upstreams while connecting to upstream, client";
    assert!(checked.server.has_logged(text));
    // A backup helps.
    let group = "upstream app { server 10.0.0.2; server 10.0.0.3 backup; }";
    let mut checked = Checked::configured(&configuration(group, "", ""));
    checked.set_probe(ORIGIN, status(503));
    checked.run_to(SECOND);
    assert_eq!(checked.ask(2), [OTHER, OTHER]);
}

#[test]
fn a_mandatory_check_comes_before_the_first_request() {
    let mut checked = Checked::new("mandatory", "");
    let wait = vec![Act::Wait(2 * SECOND), ok("slow")];
    checked.set_probe(ORIGIN, wait.clone());
    checked.set_probe(OTHER, wait);
    assert_eq!(checked.states(), [CHECKING, CHECKING]);
    let answer = checked.server.ask(&get("/"));
    assert!(answer.starts_with(b"HTTP/1.1 502 "));
    checked.run_to(3 * SECOND);
    assert_eq!(checked.states(), [UP, UP]);
    assert_eq!(checked.ask(2), [ORIGIN, OTHER]);
    let word = "peer is healthy while checking status code, health check \"\" of peer";
    assert!(checked.log().iter().all(|line| line.starts_with(word)));
    assert_eq!(checked.log().len(), 2);
}

#[test]
fn one_of_several_checks_is_enough_to_be_unhealthy() {
    let more = "health_check uri=/more interval=2";
    let mut checked = Checked::new(&format!("interval=1; {more}"), "");
    checked.set_probe(ORIGIN, status(500));
    checked.run_to(SECOND / 2);
    assert_eq!(checked.states(), [UNHEALTHY, UP]);
    // The other check goes on to pass.
    checked.run_to(SECOND * 5 / 2);
    assert_eq!(checked.states(), [UNHEALTHY, UP]);
    checked.set_probe(ORIGIN, Vec::new());
    checked.run_to(SECOND * 7 / 2);
    assert_eq!(checked.states(), [UP, UP]);
    let probes = checked.probes_of(OTHER);
    let more = probes
        .iter()
        .filter(|probe| probe.starts_with("GET /more "));
    assert_eq!((more.count(), probes.len()), (2, 6));
}

#[test]
fn a_server_that_is_down_is_not_probed() {
    let group = "upstream app { server 10.0.0.2 down; server 10.0.0.3; }";
    let mut checked = Checked::configured(&configuration(group, "", ""));
    checked.run_to(SECOND);
    assert_eq!(checked.states(), [PeerState::Down, UP]);
    assert!(checked.probes_of(ORIGIN).is_empty());
}

#[test]
fn jitter_spreads_the_probes() {
    let check = |parameters: &str, expected: std::ops::RangeInclusive<usize>| {
        let mut checked = Checked::new(parameters, "");
        checked.run_to(20 * SECOND);
        let count = checked.probes_of(ORIGIN).len();
        assert!(expected.contains(&count), "{parameters}: {count}");
    };
    check("interval=1", 20..=21);
    check("interval=1 jitter=3", 6..=13);
    let mut checked = Checked::new("interval=1 jitter=3", "");
    let mut moments = Vec::new();
    for step in 1..2000 {
        checked.run_to(step * 10 * MS);
        let counts = [ORIGIN, OTHER].map(|origin| checked.probes_of(origin).len());
        moments.push(counts);
    }
    let differ = moments.iter().filter(|[one, two]| one != two).count();
    assert!(differ > 100, "{differ}");
}

#[test]
fn a_match_block_tests_status_fields_content_and_variables() {
    let block = "match fit { status 200-204 500; header X-Up = yes; header ! X-Down; body ~ \"^it (is|was) up\"; \
                 require $told $upstream_http_x_up; } map $upstream_http_x_up $told { yes 1; default 0; }";
    let check = |head: &str, body: &str, during: Option<&str>| {
        let mut checked = Checked::new("match=fit", block);
        let len = body.len();
        checked.set_probe(
            ORIGIN,
            vec![
                send(&format!("HTTP/1.1 {head}\r\nContent-Length: {len}\r\n\r\n")),
                Act::Wait(MS),
                send(body),
            ],
        );
        checked.run_to(SECOND);
        let expected = during.map_or(UP, |_| UNHEALTHY);
        assert_eq!(checked.states()[0], expected, "{head} {body}");
        let lines = during.map(|during| {
            format!(
                "peer is unhealthy while {during}, health check \"fit\" of peer 10.0.0.2:80 in upstream \"app\""
            )
        });
        let log = checked.log();
        let mut of_origin = log.iter().filter(|line| line.contains("10.0.0.2"));
        assert_eq!(of_origin.next(), lines.as_ref());
    };
    check("500 E\r\nX-Up: yes", "it is up", None);
    check(
        "205 E\r\nX-Up: yes",
        "it is up",
        Some("checking status code"),
    );
    check("200 E\r\nX-Up: no", "it is up", Some("checking header"));
    check(
        "200 E\r\nX-Up: yes\r\nX-Down: now",
        "it is up",
        Some("checking header"),
    );
    check("200 E\r\nX-Up: yes", "it is not up", Some("checking body"));
    let other = block.replace("header X-Up = yes;", "header X-Up;");
    let mut checked = Checked::new("match=fit", &other);
    let no = "HTTP/1.1 200 O\r\nX-Up: no\r\nContent-Length: 8\r\n\r\nit is up";
    checked.set_probe(ORIGIN, vec![send(no)]);
    checked.run_to(SECOND);
    let during = "peer is unhealthy while checking variables, health check \"fit\"";
    assert!(checked.log()[0].starts_with(during), "{:?}", checked.log());
}

#[test]
fn a_match_block_may_compare_a_checksum_of_the_content() {
    let check = |block: &str, contents: [&str; 2], expected: PeerState| {
        let mut checked = Checked::new("match=m interval=5s", block);
        checked.set_probe(ORIGIN, vec![ok(contents[0])]);
        checked.run_to(SECOND);
        checked.set_probe(ORIGIN, vec![ok(contents[1])]);
        checked.run_to(7 * SECOND);
        assert_eq!(checked.states()[0], expected, "{block} {contents:?}");
    };
    // The checksum of "123456789", as all tables of CRC-32 have it.
    let fixed = "match m { crc32 cbf43926; }";
    check(fixed, ["123456789", "123456789"], UP);
    check(fixed, ["123456789", "12345678"], UNHEALTHY);
    let auto = "match m { status 200; crc32 auto; }";
    check(auto, ["a", "a"], UP);
    check(auto, ["a", "b"], UNHEALTHY);
    let mut checked = Checked::new("match=m", fixed);
    checked.set_probe(ORIGIN, vec![ok("x")]);
    checked.run_to(SECOND);
    let during = "peer is unhealthy while checking CRC-32, health check \"m\"";
    assert!(checked.log()[0].starts_with(during), "{:?}", checked.log());
}
