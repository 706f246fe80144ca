//! Random requests, locations and answers of upstream servers, through nginx and through Millstream.
//!
//! Some clients leave early: within the head, within the content, while they wait, within the answer; some send FIN, or
//! another request behind the first one. Compared are the answer, what the upstream servers were asked on which
//! connection, and the lines of the access and error logs. A difference is an error, unless `known.rs` and COMPLIANCE.md have it. The ordinary test takes some requests from a
//! fixed seed; `MILLSTREAM_SEEDED=REQUESTS` or `=REQUESTS,SEED` takes others:
//!
//! ```sh
//! MILLSTREAM_SEEDED=5000 cargo test -p millstream --test differential seeded::millstream
//! ```

/// Random choices that a seed repeats.
mod draw;

/// Random locations.
mod place;

/// Random requests.
mod request;

/// Random answers of an upstream server.
mod answer;

/// Known differences.
pub(crate) mod known;

use crate::cases::{Case, Subject};
use crate::origin::Scripts;
use crate::server::Program;
use crate::trial::{self, Pair};
use draw::Draw;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Requests that one pair of servers gets, and their locations.
const REQUESTS_PER_SUBJECT: usize = 100;
const LOCATIONS: usize = 24;

/// Pairs of servers that run at the same time.
const AT_ONCE: usize = 4;

/// Without an order from outside.
const REQUESTS: usize = 300;
const SEED: u64 = 16;

/// A subject with its requests, and which known differences each may show.
struct Drawn {
    subject: Subject,
    may: Vec<Vec<&'static str>>,
    /// The location of each request.
    places: Vec<String>,
}

const HTTP: &str = "
log_format seeded '$request|$status|$body_bytes_sent|$upstream_addr|$upstream_status|$upstream_response_length|$upstream_bytes_sent|$upstream_bytes_received|$sent_http_location';
access_log %OUT%/seeded.log seeded;
proxy_read_timeout 300ms;
server_tokens off;
";

const LOCATIONS_OF_ALL: &str = "
location /secret/ { internal; alias %ROOT%/; }
location /errors/ { internal; root %ROOT%; }
location @named { return 200 \"named $uri $upstream_status\\n\"; }
location @second { proxy_pass http://%SECOND%; }
";

impl Drawn {
    /// `count` requests from this seed.
    fn new(seed: u64, count: usize) -> Self {
        let mut draw = Draw::new(seed);
        let places: Vec<_> = (0..LOCATIONS)
            .map(|number| place::draw(&mut draw, number))
            .collect();
        let server = places.concat();
        let mut drawn = Self {
            subject: Subject {
                name: format!("seed {seed}"),
                http: format!("{HTTP}{}", place::UPSTREAMS),
                server: Some(format!("{LOCATIONS_OF_ALL}{server}")),
                compare: Vec::new(),
                cases: Vec::new(),
                scripts: Scripts::new(),
                reference: Scripts::new(),
            },
            may: Vec::new(),
            places: Vec::new(),
        };
        for number in 0..count {
            let location = draw.below(LOCATIONS);
            let mut answer = answer::draw(&mut draw);
            let mut request = request::draw(&mut draw, location, number);
            request.behave(&mut draw, &mut answer.script, location, number);
            let mut may = answer.may;
            may.extend(request.may);
            if places[location].contains("proxy_request_buffering off") {
                may.push("connection-after-unread-content");
            }
            let (scripts, reference) = (&mut drawn.subject.scripts, &mut drawn.subject.reference);
            if let Some(mut script) = answer.reference {
                script.is_late = answer.script.is_late;
                reference.insert(format!("s{number}"), script);
            }
            scripts.insert(format!("s{number}"), answer.script);
            drawn.subject.cases.push(Case {
                text: format!("request {number} of seed {seed}"),
                differs: None,
                once: None,
                sends: request.sends,
                leaves: request.leaves,
            });
            drawn.may.push(may);
            drawn.places.push(places[location].clone());
        }
        drawn
    }

    /// The texts of both programs, for each request.
    fn run(&self, other: Program) -> Vec<[String; 2]> {
        let mut pair = Pair::start(&self.subject, other);
        let cases = self.subject.cases.iter();
        let answers = cases.map(|case| {
            let [nginx, other] = pair.answers(case);
            let [to_nginx, to_other] = pair.close_connections();
            [nginx + &to_nginx, other + &to_other]
        });
        let mut shown: Vec<[String; 2]> = answers.collect();
        pair.stop();
        for (side, lines) in pair.log("seeded.log").iter().enumerate() {
            for line in lines.lines() {
                if let Some((request, rest)) = line.split_once('|')
                    && let Some(shown) = number_in(request).and_then(|number| shown.get_mut(number))
                {
                    let _ = writeln!(shown[side], "log |{rest}");
                }
            }
        }
        for (side, lines) in pair.log("error.log info").iter().enumerate() {
            for line in lines.lines() {
                let request = line.split_once("request: \"").map(|(_, request)| request);
                if let Some(number) = request.and_then(number_in)
                    && let Some(shown) = shown.get_mut(number)
                {
                    let _ = writeln!(shown[side], "{line}");
                }
            }
        }
        shown
    }

    /// The differences that are not known, by number of the request; counts the others by name.
    fn differences(
        &self,
        other: Program,
        met: &mut BTreeMap<&'static str, usize>,
    ) -> BTreeMap<usize, String> {
        let mut differences = BTreeMap::new();
        for (number, [mut nginx, mut found]) in self.run(other).into_iter().enumerate() {
            let mut may = self.may[number].clone();
            may.extend(known::EVERYWHERE);
            known::level::level(&mut nginx, &mut found, other);
            let shown = self.show(number);
            for known in known::KNOWN {
                let may =
                    self.may[number].contains(&known.id) || known::EVERYWHERE.contains(&known.id);
                if may && nginx != found {
                    let before = (nginx.clone(), found.clone());
                    (known.hide)(&mut nginx, &mut found);
                    if before != (nginx.clone(), found.clone()) {
                        *met.entry(known.id).or_default() += 1;
                    }
                }
            }
            if nginx != found {
                let text = trial::difference(&self.subject.cases[number].text, &nginx, &found);
                differences.insert(number, format!("{text}{shown}"));
            }
        }
        differences
    }

    /// A request with its location and the answer of the upstream server.
    fn show(&self, number: usize) -> String {
        let escape = |bytes: &[u8]| {
            let text = bytes[..bytes.len().min(700)].escape_ascii().to_string();
            text.replace("\\r\\n", "¶")
        };
        let script = &self.subject.scripts[&format!("s{number}")];
        let sends: Vec<_> = self.subject.cases[number]
            .sends
            .iter()
            .map(|send| escape(send))
            .collect();
        let parts: Vec<_> = script.parts.iter().map(|part| escape(part)).collect();
        format!(
            "    {}    client: {} {:?}\n    server: {} {:?}{}{}\n",
            self.places[number],
            sends.join("⏸"),
            self.subject.cases[number].leaves,
            parts.join("⏸"),
            script.end,
            if script.is_early { " early" } else { "" },
            if script.is_late { " late" } else { "" }
        )
    }
}

/// The number of a request whose request line begins here.
fn number_in(request: &str) -> Option<usize> {
    let (_, rest) = request.split_once("?n=")?;
    let digits = rest
        .find(|byte: char| !byte.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// How many requests from which seed.
fn order() -> (usize, u64) {
    let Ok(order) = std::env::var("MILLSTREAM_SEEDED") else {
        return (REQUESTS, SEED);
    };
    let (count, seed) = order.split_once(',').unwrap_or((&order, "16"));
    (count.parse().unwrap(), seed.parse().unwrap())
}

/// Runs all requests; a difference counts if a second run shows it too.
#[expect(
    clippy::print_stdout,
    reason = "the seed repeats a failure, and the counts say what was met"
)]
fn check(other: Program) {
    let (count, seed) = order();
    let subjects = count.div_ceil(REQUESTS_PER_SUBJECT);
    let next = AtomicUsize::new(0);
    let verdict = Mutex::new((String::new(), BTreeMap::<_, usize>::new(), 0_usize));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(subjects) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= subjects {
                        return;
                    }
                    let requests = REQUESTS_PER_SUBJECT.min(count - index * REQUESTS_PER_SUBJECT);
                    let drawn = Drawn::new(seed.wrapping_mul(1_000_000) + index as u64, requests);
                    let mut met = BTreeMap::new();
                    let mut differences = drawn.differences(other, &mut met);
                    let seen = differences.len();
                    if seen > 0 {
                        let again = drawn.differences(other, &mut BTreeMap::new());
                        differences.retain(|number, _| again.contains_key(number));
                    }
                    let mut verdict = verdict.lock().unwrap();
                    verdict.0.extend(differences.values().map(String::as_str));
                    for (id, count) in met {
                        *verdict.1.entry(id).or_default() += count;
                    }
                    verdict.2 += seen - differences.len();
                }
            });
        }
    });
    let (differences, met, passing) = verdict.into_inner().unwrap();
    println!("{count} requests, seed {seed}; known differences: {met:?}; once only: {passing}");
    assert!(differences.is_empty(), "seed {seed}\n{differences}");
}

#[test]
fn millstream_answers_random_requests_as_nginx() {
    check(Program::Millstream);
}

#[test]
fn nginx_answers_random_requests_as_itself() {
    check(Program::Nginx);
}

#[test]
fn every_known_difference_of_random_requests_is_explained_in_compliance_md() {
    let explained = include_str!("../../../../COMPLIANCE.md");
    for known in known::KNOWN {
        let mention = format!("`{}`", known.id);
        assert!(
            explained.contains(&mention),
            "COMPLIANCE.md has no {mention}"
        );
    }
}
