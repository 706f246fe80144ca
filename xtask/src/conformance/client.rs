//! Requests, when they are due, and what comes of them.
//!
//! Caches count in whole seconds. So that a case is the same in each of them, and the same as in simulated time, a request
//! before is made in the middle of a second, and the last one exactly so many seconds behind it.

use super::origin::Origin;
use mill_conformance::caching::{Asking, Case, Found};
use mill_sys::clock::{monotonic, realtime};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::Duration;

/// What becomes of the last request of each case; `None` where the cache has not answered.
pub(super) fn ask_all(cases: &[Case], port: u16, origin: &Origin) -> Vec<Option<String>> {
    let mut asking = AskingAll {
        cases,
        port,
        origin,
        due: BTreeSet::new(),
        outcomes: vec![None; cases.len()],
    };
    for (number, case) in cases.iter().enumerate() {
        asking.ask_what_is_due();
        wait_for_the_middle_of_a_second();
        for before in &case.before {
            // What comes of the last one says whether it has worked.
            let _ = ask(before, number, port);
        }
        let at = monotonic() + Duration::from_secs(case.seconds);
        asking.due.insert((at, number));
    }
    while let Some((at, _)) = asking.due.first() {
        wait_until(*at);
        asking.ask_what_is_due();
    }
    asking.outcomes
}

struct AskingAll<'a> {
    cases: &'a [Case],
    port: u16,
    origin: &'a Origin,
    /// When the last request of which case is to be made.
    due: BTreeSet<(Duration, usize)>,
    outcomes: Vec<Option<String>>,
}

impl AskingAll<'_> {
    fn ask_what_is_due(&mut self) {
        while let Some((at, number)) = self.due.first().copied() {
            if at > monotonic() {
                return;
            }
            self.due.remove(&(at, number));
            self.outcomes[number] = self.last(number);
        }
    }

    fn last(&self, number: usize) -> Option<String> {
        let case = &self.cases[number];
        let before = self.origin.seen(number).asked.len();
        let (status, head) = ask(&case.last, number, self.port).ok()?;
        let seen = self.origin.seen(number);
        let found = Found {
            status,
            head,
            asked: seen.asked.get(before..).unwrap_or_default().to_vec(),
            said: seen.said.get(before).copied(),
        };
        Some(found.outcome(&case.expected, AGE_TOLERANCE))
    }
}

fn wait_for_the_middle_of_a_second() {
    let millis = realtime().subsec_millis();
    if !(FIRST_MILLI..LAST_MILLI).contains(&millis) {
        let left = (1_000 + FIRST_MILLI - millis) % 1_000;
        wait_until(monotonic() + Duration::from_millis(u64::from(left)));
    }
}

fn wait_until(at: Duration) {
    while let Some(left) = at.checked_sub(monotonic()).filter(|left| !left.is_zero()) {
        thread::park_timeout(left);
    }
}

/// Status and head of the answer.
fn ask(asking: &Asking, folder: usize, port: u16) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request(asking, folder).as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("no answer"))?;
    Ok((status, head.to_owned()))
}

fn request(asking: &Asking, folder: usize) -> String {
    let path = asking.path.replace('~', &format!("/{folder}"));
    let mut text = format!(
        "{} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n",
        asking.method
    );
    for line in &asking.fields {
        text += &format!("{line}\r\n");
    }
    if !asking.is_safe() {
        text += "Content-Length: 0\r\n";
    }
    text + "\r\n"
}

/// Milliseconds of a second between which requests before are made.
const FIRST_MILLI: u32 = 150;
const LAST_MILLI: u32 = 600;

/// Seconds: an answer may come in the second behind the one in which it was asked for.
const AGE_TOLERANCE: u64 = 1;

/// A cache that has not answered by then does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;
    use mill_conformance::caching::cases;

    #[test]
    fn a_request_is_for_the_folder_of_its_case() {
        let text = "3 | - | :method POST;:path ~/b;X-A: 1 | 0 | - | hit";
        let case = cases(text).remove(0);
        let expected = "POST /7/b HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-A: 1\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(request(&case.before[0], 7), expected);
        assert!(request(&case.last, 7).starts_with("GET /7/a HTTP/1.1\r\n"));
    }
}
