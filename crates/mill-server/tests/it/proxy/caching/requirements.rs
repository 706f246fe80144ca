//! RFC 9111 and its kin, requirement by requirement, in the cases of `requirements/`; `cargo xtask conformance` puts the same
//! ones to other caches.

use super::super::origin::{Act, send};
use super::Cached;
use mill_conformance::caching::{Asking, Case, Found, Origin, Saying, cases, header, http_date};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

const TEXTS: [&str; 6] = [
    include_str!("conformance.txt"),
    include_str!("requirements/storing.txt"),
    include_str!("requirements/freshness.txt"),
    include_str!("requirements/validation.txt"),
    include_str!("requirements/directives.txt"),
    include_str!("requirements/vary.txt"),
];

/// Unix seconds at which a world begins: 2026-01-01.
const BEGINNING: i64 = 1_767_225_600;

/// What an origin of a case has said, by number.
#[derive(Default)]
struct Said {
    statuses: RefCell<Vec<u16>>,
    safe: RefCell<usize>,
    now: RefCell<i64>,
}

impl Said {
    fn answer(&self, origin: &Origin, request: &str) -> Act {
        let method = request.split(' ').next().unwrap_or_default();
        let is_safe = matches!(method, "GET" | "HEAD" | "OPTIONS");
        let saying = origin.saying(*self.safe.borrow(), is_safe);
        *self.safe.borrow_mut() += usize::from(is_safe);
        let value = |name| header(request, name).unwrap_or_default();
        let is_same = saying.is_same(&value("If-None-Match"), &value("If-Modified-Since"));
        let (status, fields) = match is_same {
            true => (304, origin.validating.as_slice()),
            false => (saying.status, saying.fields.as_slice()),
        };
        self.statuses.borrow_mut().push(status);
        send(&self.text(status, fields, method == "HEAD"))
    }

    fn text(&self, status: u16, fields: &[String], is_head: bool) -> String {
        let mut text = format!("HTTP/1.1 {status} Status\r\n");
        for line in fields {
            let line = http_date::written(line, *self.now.borrow()).replace('~', "");
            write!(text, "{line}\r\n").expect("a string takes all");
        }
        match status {
            204 | 304 => text + "\r\n",
            _ if is_head => text + "Content-Length: 1\r\n\r\n",
            _ => text + "Content-Length: 1\r\n\r\nx",
        }
    }
}

fn request(asking: &Asking) -> String {
    let path = asking.path.replace('~', "");
    let mut text = format!("{} {path} HTTP/1.1\r\nHost: a\r\n", asking.method);
    for line in &asking.fields {
        write!(text, "{line}\r\n").expect("a string takes all");
    }
    if !asking.is_safe() {
        text += "Content-Length: 0\r\n";
    }
    text + "\r\n"
}

/// What becomes of the last request of a case.
fn outcome(case: &Case) -> String {
    let said = Rc::new(Said::default());
    *said.now.borrow_mut() = BEGINNING;
    let (origin, saying) = (case.origin.clone(), Rc::clone(&said));
    let directives = "cache_rules rfc9111; cache_status mill; cache_targeted Mill-Cache-Control;
         location / { proxy_pass http://app; }";
    let mut cached = Cached::new(directives, move |_, request| {
        vec![saying.answer(&origin, request)]
    });
    for asking in &case.before {
        cached.ask(&request(asking));
    }
    cached.pass(case.seconds);
    *said.now.borrow_mut() += i64::try_from(case.seconds).expect("few seconds");
    let before = cached.asked();
    let answer = cached.ask(&request(&case.last));
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    let asked = cached.seen.requests.borrow();
    let found = Found {
        status: answer.get(9..12).map_or(0, |it| it.parse().unwrap_or(0)),
        head: head.to_owned(),
        asked: asked.get(before..).unwrap_or_default().to_vec(),
        said: said.statuses.borrow().get(before).copied(),
    };
    found.outcome(&case.expected, 0)
}

#[test]
fn each_requirement_is_met() {
    let (mut failed, mut count) = (String::new(), 0);
    for case in TEXTS.into_iter().flat_map(cases) {
        let found = outcome(&case);
        count += 1;
        if found != case.expected.outcome {
            writeln!(failed, "{case}\n    found: {found}").expect("a string takes all");
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
    assert!(count > 500, "{count} cases");
}

#[test]
fn an_origin_says_what_its_case_says() {
    let saying = |text: &str| cases(text).remove(0).origin.saying(1, true).clone();
    let then = saying("3 | X: 1;then :status 503 | - | 1 | - | hit");
    assert_eq!((then.status, then.fields.len()), (503, 0));
    let first = saying("3 | X: 1 | - | 1 | - | hit");
    assert_eq!(
        first,
        Saying {
            status: 200,
            fields: vec![String::from("X: 1")]
        }
    );
}
