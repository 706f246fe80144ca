//! A client over the plain TCP.

use super::{Finding, Said, head_len};
use crate::content::{self, Hash};
use crate::plan::{Parting, PlainTalk, Talk};
use crate::talk::{POST_ANSWER, POST_PATH, path};

#[derive(Debug)]
pub(super) struct Client {
    /// Of its talk in the plan.
    pub(super) number: usize,
    pub(super) finding: Finding,
    /// What is still to be said, a request each.
    requests: Vec<Vec<u8>>,
    /// What is still expected, the next first.
    expected: Vec<Expected>,
    /// Bytes of a head that is not complete.
    head: Vec<u8>,
    /// Bytes of content that came.
    came: usize,
    parting: Parting,
    all_at_once: bool,
    /// FIN comes with what is said at once.
    closes_at_once: bool,
}

#[derive(Debug)]
enum Expected {
    /// A head that announces so many bytes.
    Head(usize),
    /// The rest of a content.
    Content(Vec<u8>),
}

impl Client {
    pub(super) fn new(number: usize, talk: &PlainTalk) -> Self {
        let mut client = Self {
            number,
            finding: Finding::Open,
            requests: Vec::new(),
            expected: Vec::new(),
            head: Vec::new(),
            came: 0,
            parting: talk.parting,
            all_at_once: talk.all_at_once || talk.parting == Parting::AtOnce,
            closes_at_once: talk.parting == Parting::AtOnce,
        };
        match &talk.what {
            Talk::Get { files, .. } => client.ask_for(files),
            Talk::Post { number, len } => client.post(content::of(*number, *len)),
            Talk::Hash { number, len } => {
                let mut hash = Hash::new();
                hash.feed(content::of(*number, *len));
                client.send_all(content::of(*number, *len), hash.to_bytes().to_vec());
            }
            Talk::Echo { number, len } => {
                let bytes = content::of(*number, *len);
                client.send_all(bytes, bytes.to_vec());
            }
        }
        client.expected.reverse();
        client.requests.reverse();
        client
    }

    fn ask_for(&mut self, files: &[(u32, usize)]) {
        for (index, (number, len)) in files.iter().enumerate() {
            let is_last = index + 1 == files.len();
            let close = self.close_line(is_last);
            let path = path(*number, *len);
            let request = format!("GET {path} HTTP/1.1\r\nHost: world\r\n{close}\r\n");
            self.requests.push(request.into_bytes());
            self.expected.push(Expected::Head(*len));
            self.expected
                .push(Expected::Content(content::of(*number, *len).to_vec()));
        }
    }

    fn post(&mut self, bytes: &[u8]) {
        let (len, close) = (bytes.len(), self.close_line(true));
        let mut request = format!(
            "POST {POST_PATH} HTTP/1.1\r\nHost: world\r\nContent-Length: {len}\r\n{close}\r\n"
        )
        .into_bytes();
        request.extend(bytes);
        self.requests.push(request);
        self.expected.push(Expected::Head(POST_ANSWER.len()));
        self.expected
            .push(Expected::Content(POST_ANSWER.as_bytes().to_vec()));
    }

    /// These servers answer to the end of what they are sent.
    fn send_all(&mut self, bytes: &[u8], answer: Vec<u8>) {
        self.closes_at_once = true;
        self.all_at_once = true;
        self.requests.push(bytes.to_vec());
        self.expected.push(Expected::Content(answer));
    }

    const fn close_line(&self, is_last: bool) -> &'static str {
        match self.parting {
            Parting::Second | Parting::Crossing if is_last => "Connection: close\r\n",
            _ => "",
        }
    }

    pub(super) fn act(&mut self, unread: &[u8], finished: bool) -> Said {
        let mut said = Said::default();
        self.take(unread);
        if self.all_at_once {
            said.bytes = self.requests.drain(..).rev().flatten().collect();
        } else if self.expected.len() == self.requests.len() * EXPECTED_OF_ANSWER {
            // All that was asked for is here.
            said.bytes = self.requests.pop().unwrap_or_default();
        }
        self.part(&mut said);
        if finished {
            self.end();
            said.closes = true;
        }
        said
    }

    /// Compares what came.
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.finding == Finding::Open && !self.has_left() {
            match self.expected.last_mut() {
                None => return self.wrong(format!("{} bytes more than were sent", bytes.len())),
                Some(Expected::Head(len)) => {
                    let len = *len;
                    let before = self.head.len();
                    self.head.extend(bytes);
                    let Some(end) = head_len(&self.head) else {
                        return;
                    };
                    bytes = &bytes[end - before..];
                    self.head.truncate(end);
                    let head =
                        String::from_utf8_lossy(&std::mem::take(&mut self.head)).into_owned();
                    let is_answer = head.starts_with("HTTP/1.1 200 ")
                        && head.contains(&format!("\r\nContent-Length: {len}\r\n"));
                    if !is_answer {
                        return self.wrong(format!("{len} bytes were asked for: {head}"));
                    }
                    self.expected.pop();
                }
                Some(Expected::Content(rest)) => {
                    let len = bytes.len().min(rest.len());
                    let differs = bytes.iter().zip(&*rest).position(|(a, b)| a != b);
                    if let Some(at) = differs {
                        let at = self.came + at;
                        return self.wrong(format!("another byte at {at}"));
                    }
                    rest.drain(..len);
                    let is_whole = rest.is_empty();
                    bytes = &bytes[len..];
                    self.came += len;
                    if is_whole {
                        self.expected.pop();
                    }
                }
            }
        }
    }

    /// Whether it wants nothing more.
    const fn has_left(&self) -> bool {
        match self.parting {
            Parting::Early(after) | Parting::Reset(after) => self.came >= after,
            _ => false,
        }
    }

    /// When it says that it has said all.
    fn part(&mut self, said: &mut Said) {
        let has_all = self.expected.is_empty();
        said.resets = matches!(self.parting, Parting::Reset(_)) && self.has_left();
        said.closes = self.closes_at_once
            || self.has_left()
            || has_all && !matches!(self.parting, Parting::AtOnce | Parting::Second);
        if said.resets || self.has_left() && said.closes {
            self.found(Finding::Whole);
        }
    }

    fn end(&mut self) {
        if self.expected.is_empty() {
            self.found(Finding::Whole);
        } else {
            let came = self.came;
            self.found(Finding::Broken(format!("ended after {came} bytes")));
        }
    }

    pub(super) fn break_off(&mut self, why: &'static str) {
        self.found(match self.came {
            0 => Finding::Refused(why),
            came => Finding::Broken(format!("{why} after {came} bytes")),
        });
    }

    fn wrong(&mut self, what: String) {
        self.finding = Finding::Wrong(what);
    }

    /// The first finding stays.
    fn found(&mut self, finding: Finding) {
        if self.finding == Finding::Open {
            self.finding = finding;
        }
    }
}

/// A head and a content.
const EXPECTED_OF_ANSWER: usize = 2;
