//! The server behind the caches: it says what the case says whose folder is asked for, and writes down what it was asked.

use mill_conformance::caching::{Case, header, http_date};
use mill_sys::clock::realtime;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A server on a port of its own, until the program ends.
pub(super) struct Origin {
    port: u16,
    seen: Arc<Vec<Mutex<Seen>>>,
}

/// What was asked for a case, and said to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Heads of requests.
    pub(super) asked: Vec<String>,
    /// Statuses.
    pub(super) said: Vec<u16>,
    safe: usize,
}

impl Origin {
    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// What was seen of a case up to now.
    pub(super) fn seen(&self, case: usize) -> Seen {
        let seen = self.seen[case].lock();
        seen.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) fn start(cases: &[Case]) -> io::Result<Origin> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let seen: Vec<_> = cases.iter().map(|_| Mutex::default()).collect();
    let seen = Arc::new(seen);
    let (cases, written) = (Arc::new(cases.to_vec()), Arc::clone(&seen));
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (cases, seen) = (Arc::clone(&cases), Arc::clone(&written));
            // A cache that ends its connection ends the thread.
            thread::spawn(move || serve(stream, &cases, &seen));
        }
    });
    Ok(Origin { port, seen })
}

fn serve(mut stream: TcpStream, cases: &[Case], seen: &[Mutex<Seen>]) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(head) = read_head(&mut reader)? {
        let answer = answer(&head, cases, seen);
        stream.write_all(answer.as_bytes())?;
    }
    Ok(())
}

/// Up to the empty line; `None` at the end of the connection. Requests of cases have no content.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut head = String::new();
    while reader.read_line(&mut head)? > 0 {
        if head.ends_with("\r\n\r\n") {
            return Ok(Some(head));
        }
        if head.len() > HEAD_BYTES_MAX {
            return Err(io::Error::other("a head without an end"));
        }
    }
    Ok(None)
}

fn answer(head: &str, cases: &[Case], seen: &[Mutex<Seen>]) -> String {
    let mut words = head.split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let folder = target.split('/').nth(1).unwrap_or_default();
    let number = folder.parse().unwrap_or(usize::MAX);
    let (Some(case), Some(seen)) = (cases.get(number), seen.get(number)) else {
        // What looks whether we are there.
        return String::from(
            "HTTP/1.1 200 Status\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n",
        );
    };
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let is_safe = matches!(method, "GET" | "HEAD" | "OPTIONS");
    let saying = case.origin.saying(seen.safe, is_safe);
    seen.safe += usize::from(is_safe);
    let value = |name| header(head, name).unwrap_or_default();
    let is_same = saying.is_same(&value("If-None-Match"), &value("If-Modified-Since"));
    let (status, fields) = match is_same {
        true => (304, &case.origin.validating),
        false => (saying.status, &saying.fields),
    };
    seen.asked.push(head.to_owned());
    seen.said.push(status);
    text(status, fields, number, method == "HEAD")
}

fn text(status: u16, fields: &[String], folder: usize, is_head: bool) -> String {
    let now = i64::try_from(realtime().as_secs()).unwrap_or(i64::MAX);
    let mut text = format!("HTTP/1.1 {status} Status\r\n");
    for line in fields {
        let line = http_date::written(line, now).replace('~', &format!("/{folder}"));
        text += &format!("{line}\r\n");
    }
    match status {
        204 | 304 => text + "\r\n",
        _ if is_head => text + "Content-Length: 1\r\n\r\n",
        _ => text + "Content-Length: 1\r\n\r\nx",
    }
}

/// Far more than any cache sends.
const HEAD_BYTES_MAX: usize = 64 * 1024;
