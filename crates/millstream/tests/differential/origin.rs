//! An upstream server that answers by scripts, and writes down what it was asked.
//!
//! The last segment of a request's path names its script. Bytes are sent as they stand there, so that an answer may be
//! malformed in any way.

use crate::answer;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What is answered to one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    /// The request's content is not waited for.
    pub(crate) is_early: bool,
    /// Sent one after the other, with a pause in between.
    pub(crate) parts: Vec<Vec<u8>>,
    /// Nothing is sent until a client had the time to leave.
    pub(crate) is_late: bool,
    pub(crate) end: ScriptEnd,
}

/// What follows on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptEnd {
    /// The next request.
    Keep,
    Close,
    Reset,
    /// Everything that arrives is sent back.
    Echo,
}

/// Scripts by name.
pub(crate) type Scripts = BTreeMap<String, Script>;

/// A running one, ended when it is dropped.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    scripts: Scripts,
    /// One text a request.
    seen: Mutex<Vec<String>>,
    /// Connections without a request under way, by number.
    idle: Mutex<BTreeMap<usize, TcpStream>>,
    /// Connections that were accepted, and those of them that are still open.
    accepted: AtomicUsize,
    open: AtomicUsize,
    is_over: AtomicBool,
}

/// Longer than a proxy takes to read what was sent.
const PAUSE: Duration = Duration::from_millis(60);

/// Longer than a client takes that leaves ([`crate::exchange::LEAVES_AFTER`]) and a proxy that notices it.
const LATE: Duration = Duration::from_millis(200);

/// How often it is looked whether proxies have closed their idle connections, and how long in between.
const LOOKS_MAX: u32 = 500;
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

impl Origin {
    pub(crate) fn start(scripts: Scripts) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            scripts,
            seen: Mutex::default(),
            idle: Mutex::default(),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Self { port, shared }
    }

    /// What has been asked since this was last called.
    pub(crate) fn take_seen(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.seen.lock().unwrap())
    }

    /// Ends all connections once they carry no request, and waits until the proxy has closed them.
    pub(crate) fn close_all(&self) {
        for _ in 0..LOOKS_MAX {
            for stream in self.shared.idle.lock().unwrap().values() {
                // The proxy may have reset it.
                let _ = stream.shutdown(Shutdown::Write);
            }
            if self.shared.open.load(Ordering::Relaxed) == 0 {
                return;
            }
            thread::park_timeout(LOOK_INTERVAL);
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the listener; if that fails, its thread ends with the process.
        let _ = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], self.port)));
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept() {
        if shared.is_over.load(Ordering::Relaxed) {
            return;
        }
        let shared = Arc::clone(shared);
        shared.open.fetch_add(1, Ordering::Relaxed);
        thread::spawn(move || {
            serve(stream, &shared);
            shared.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let connection = shared.accepted.fetch_add(1, Ordering::Relaxed);
    let mut number = 0;
    loop {
        number += 1;
        shared.wait_for_request(connection, &stream);
        let mut seen = Vec::new();
        let is_head = read_head(&mut stream, &mut seen);
        let script = shared.script_for(&seen);
        if is_head && script.end != ScriptEnd::Reset {
            let mut last = [0];
            let _ = stream.read_exact(&mut last);
        }
        let early = script.is_early || script.end == ScriptEnd::Reset;
        if is_head && !early {
            read_content(&mut stream, &mut seen);
        }
        if seen.is_empty() {
            return;
        }
        shared.write_down(number, &seen);
        if !is_head {
            return;
        }
        if script.is_late {
            thread::park_timeout(LATE);
        }
        let is_bare = seen.starts_with(b"HEAD ");
        for (index, part) in script.parts.iter().enumerate() {
            if index > 0 {
                thread::park_timeout(PAUSE);
            }
            let end = end_of_head(part).filter(|_| is_bare);
            if stream
                .write_all(&part[..end.unwrap_or(part.len())])
                .is_err()
            {
                return;
            }
            if end.is_some() {
                break;
            }
        }
        match script.end {
            ScriptEnd::Keep => {}
            ScriptEnd::Close => return close(&mut stream),
            // The last byte of the head is unread: the kernel resets the connection.
            ScriptEnd::Reset => return thread::park_timeout(PAUSE),
            ScriptEnd::Echo => return echo(&mut stream),
        }
    }
}

/// Where the head of the final answer ends.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    if bytes.starts_with(b"HTTP/1.1 10") {
        return Some(end + end_of_head(&bytes[end..])?);
    }
    Some(end)
}

impl Shared {
    /// Waits until something arrives, or the connection ends.
    fn wait_for_request(&self, connection: usize, stream: &TcpStream) {
        if let Ok(idle) = stream.try_clone() {
            self.idle.lock().unwrap().insert(connection, idle);
        }
        // What it finds is read again.
        let _ = stream.peek(&mut [0]);
        self.idle.lock().unwrap().remove(&connection);
    }

    fn script_for(&self, seen: &[u8]) -> Script {
        let line = String::from_utf8_lossy(seen);
        let line = line.lines().next().unwrap_or_default();
        // nginx may send blanks in a target.
        let (line, _) = line.rsplit_once(" HTTP/").unwrap_or((line, ""));
        let (_, target) = line.split_once(' ').unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        self.scripts.get(name).cloned().unwrap_or_else(|| Script {
            is_early: false,
            is_late: false,
            parts: vec![
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"
                    .to_vec(),
            ],
            end: ScriptEnd::Keep,
        })
    }

    fn write_down(&self, number: u32, seen: &[u8]) {
        let text = format!(
            "(request {number} of its connection)\n  {}\n",
            show(seen).trim_end()
        );
        self.seen.lock().unwrap().push(text);
    }
}

/// A request as text. Where its chunks end depends on the moment in which they came: they are joined.
fn show(seen: &[u8]) -> String {
    let escape = |bytes: &[u8]| bytes.escape_ascii().to_string().replace("\\r\\n", "\n  ");
    let end = seen.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, mut content) = seen.split_at(end.map_or(seen.len(), |end| end + 4));
    let lower = String::from_utf8_lossy(head).to_ascii_lowercase();
    if !lower.contains("\r\ntransfer-encoding: chunked\r\n") {
        return escape(head) + &answer::show_content(content);
    }
    let mut joined = Vec::new();
    let mut next = || {
        let len = content.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&content[..len]).ok()?, 16).ok()?;
        joined.extend_from_slice(content.get(len + 2..len + 2 + size)?);
        content = content.get(len + 2 + size + 2..)?;
        (size > 0).then_some(())
    };
    while next().is_some() {}
    let is_whole = lower.len() < seen.len();
    let rest = if content.is_empty() && is_whole {
        "(last chunk)\n"
    } else {
        ""
    };
    escape(head) + &answer::show_content(&joined) + rest + &escape(content)
}

/// Reads a head but for its last byte, which `seen` has nevertheless; false if the connection ended before.
fn read_head(stream: &mut TcpStream, seen: &mut Vec<u8>) -> bool {
    let mut byte = [0];
    while !seen.ends_with(b"\r\n\r") {
        match stream.read(&mut byte) {
            Ok(1) => seen.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
    seen.push(b'\n');
    true
}

/// Reads what `Content-Length` or the chunked coding announces.
fn read_content(stream: &mut TcpStream, seen: &mut Vec<u8>) {
    let head = String::from_utf8_lossy(seen).to_ascii_lowercase();
    let value_of = |name: &str| {
        let mut lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
        lines
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.to_owned())
    };
    if value_of("transfer-encoding").is_some() {
        let mut byte = [0];
        while !seen.ends_with(b"\r\n0\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
            seen.push(byte[0]);
        }
    } else if let Some(len) = value_of("content-length").and_then(|len| len.parse().ok()) {
        let mut content = Vec::new();
        let _ = stream.take(len).read_to_end(&mut content);
        seen.extend(content);
    }
}

/// Ends the answer, and reads until the proxy has closed, so that no reset overtakes the answer.
fn close(stream: &mut TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let mut rest = [0; 4096];
    while matches!(stream.read(&mut rest), Ok(1..)) {}
}

fn echo(stream: &mut TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(len @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..len]).is_err() {
            return;
        }
    }
}
