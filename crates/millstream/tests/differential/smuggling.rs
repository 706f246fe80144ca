//! The published payloads of request smuggling and response splitting over kernel sockets, through the running server.
//!
//! The payloads, and the readers that all have to divide what the upstream server and the client get in the same places,
//! are those of mill-server's simulated tests. Here each message also has to have its line in the access log.

/// An upstream server that writes down every byte.
mod recorder;

use crate::cases::Subject;
use crate::content::Directory;
use crate::lenient::{Reader, agreed_answers, agreed_requests};
use crate::origin::Scripts;
use crate::payload::{Payload, table};
use crate::server::{Program, Server};
use recorder::Recorder;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

/// A server before a recording one.
struct Proxy {
    server: Server,
    recorder: Recorder,
    /// Lines of the access log that were counted.
    lines: usize,
    _directory: Directory,
}

/// After this time without bytes nothing more is expected: longer than a loaded machine takes.
const LATE: Duration = Duration::from_secs(5);

/// A pause of a client between two parts of what it sends.
const PAUSE: Duration = Duration::from_millis(20);

/// How often the log is looked at, and how long in between.
const LOOKS_MAX: u32 = 1000;
const LOOK_INTERVAL: Duration = Duration::from_millis(3);

impl Proxy {
    /// `location` is what passes requests on to `http://app`.
    fn start(location: &str, answers: Vec<Payload>) -> Self {
        let recorder = Recorder::start(answers);
        let directory = Directory::new();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let root = directory.path().join("files");
        fs::create_dir(&root).unwrap();
        let subject = Subject {
            name: String::from("smuggling"),
            http: format!(
                "log_format tries '$upstream_addr|$request_uri'; access_log %OUT%/tries.log tries;
                 proxy_read_timeout 1s; upstream app {{ server {}; keepalive 8; }}\n",
                recorder.address
            ),
            server: Some(format!("{location}\n")),
            compare: Vec::new(),
            cases: Vec::new(),
            scripts: Scripts::new(),
            reference: Scripts::new(),
        };
        let out = directory.path().join("out");
        let server = Server::start(Program::Millstream, &subject, &root, &out);
        Self {
            server,
            recorder,
            lines: 0,
            _directory: directory,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// A harmless request on a connection of its own.
    fn is_innocent_served(&self, number: usize) -> bool {
        let mut stream = self.connect();
        let request =
            format!("GET /innocent?k={number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut received = Vec::new();
        read(&mut stream, &mut received, LATE, |_| false);
        received.ends_with(format!("\r\n\r\n/innocent?k={number}").as_bytes())
    }

    /// The tries that the access log tells of in lines up to that of an innocent request, which are new.
    fn tries(&mut self, number: usize) -> usize {
        let last = format!("|/innocent?k={number}");
        for _ in 0..LOOKS_MAX {
            let log = fs::read(self.server.out.join("tries.log")).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).into_owned();
            if let Some(at) = log.lines().position(|line| line.ends_with(&last)) {
                let address = self.recorder.address.to_string();
                let lines = log.lines().take(at + 1).skip(self.lines);
                self.lines = at + 1;
                return lines.map(|line| line.matches(&address).count()).sum();
            }
            thread::park_timeout(LOOK_INTERVAL);
        }
        panic!("no line of the access log ends in {last}");
    }

    /// What differs between the requests that were recorded and so many tries.
    fn recorded(&self, tries: usize) -> Option<String> {
        let readers = Reader::all();
        let mut fault = None;
        for _ in 0..LOOKS_MAX {
            let bytes = self.recorder.bytes();
            let divided: Result<Vec<_>, _> = bytes
                .iter()
                .map(|bytes| agreed_requests(&readers, bytes))
                .collect();
            fault = match divided {
                Err(dissent) => Some(dissent),
                Ok(divided) => {
                    let seen: usize = divided.iter().map(|division| division.starts.len()).sum();
                    (seen != tries).then(|| format!("{seen} requests in place of {tries}"))
                }
            };
            if fault.is_none() {
                break;
            }
            // A request that was given up may still arrive.
            thread::park_timeout(LOOK_INTERVAL);
        }
        self.recorder.forget();
        fault
    }
}

/// Reads until something holds of all that has come, the connection ends, or nothing comes.
fn read(
    stream: &mut TcpStream,
    received: &mut Vec<u8>,
    patience: Duration,
    is_enough: impl Fn(&[u8]) -> bool,
) {
    let mut buffer = vec![0; 1 << 16];
    stream.set_read_timeout(Some(patience)).unwrap();
    while !is_enough(received) {
        match stream.read(&mut buffer) {
            Ok(len @ 1..) => received.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

/// The statuses of all answers, with blanks in between.
fn statuses(bytes: &[u8], starts: &[usize]) -> String {
    let text = |start: &usize| String::from_utf8_lossy(&bytes[*start..]).into_owned();
    let status = |start: &usize| text(start).split(' ').nth(1).unwrap_or("none").to_owned();
    let found = starts.iter().map(status).collect::<Vec<_>>().join(" ");
    if found.is_empty() {
        String::from("-")
    } else {
        found
    }
}

/// Sends a payload on a connection of its own, and FIN once the answers are there; all that comes.
fn replay(proxy: &Proxy, payload: &Payload) -> Vec<u8> {
    let mut stream = proxy.connect();
    let mut received = Vec::new();
    let (last, before) = payload.parts.split_last().unwrap();
    for part in before {
        // The server may have closed already.
        let _ = stream.write_all(part);
        read(&mut stream, &mut received, PAUSE, |_| false);
    }
    let _ = stream.write_all(last);
    read(&mut stream, &mut received, LATE, |received| {
        statuses(received, &Reader::STRICT.answers(received, &[]).starts) == payload.statuses
    });
    let _ = stream.shutdown(Shutdown::Write);
    read(&mut stream, &mut received, LATE, |_| false);
    received
}

fn check_requests(location: &str) {
    let mut proxy = Proxy::start(location, Vec::new());
    let mut faults = String::new();
    let payloads = table(include_str!(
        "../../../mill-server/tests/it/proxy/smuggling/requests.txt"
    ));
    for (number, payload) in payloads.iter().enumerate() {
        let received = replay(&proxy, payload);
        let found = statuses(&received, &Reader::STRICT.answers(&received, &[]).starts);
        if found != payload.statuses {
            faults += &format!("{} | {found} |\n", payload.name);
        }
        if !proxy.is_innocent_served(number) {
            faults += &format!("{}: to another client\n", payload.name);
        }
        let tries = proxy.tries(number);
        if let Some(fault) = proxy.recorded(tries) {
            faults += &format!("{}: {fault}\n", payload.name);
        }
    }
    proxy.server.stop();
    assert!(faults.is_empty(), "\n{faults}");
}

#[test]
fn requests_are_divided_in_one_way_on_kept_connections() {
    check_requests(
        "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }",
    );
}

#[test]
fn requests_are_divided_in_one_way_where_content_goes_on_as_it_comes() {
    check_requests(
        "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection '';
            proxy_request_buffering off; }",
    );
}

#[test]
fn answers_are_divided_in_one_way_on_kept_connections() {
    let text = include_str!("../../../mill-server/tests/it/proxy/smuggling/answers.txt");
    let location = "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ''; }";
    let mut proxy = Proxy::start(location, table(text));
    let mut faults = String::new();
    for (number, payload) in table(text).iter().enumerate() {
        if let Some(fault) = fault_of_answer(&proxy, payload, number) {
            faults += &format!("{}{fault}\n", payload.name);
        }
    }
    proxy.server.stop();
    assert!(faults.is_empty(), "\n{faults}");
}

/// What is wrong with two answers on one connection, and one on another.
fn fault_of_answer(proxy: &Proxy, payload: &Payload, number: usize) -> Option<String> {
    let is_head = payload.name.starts_with("HEAD");
    let method = if is_head { "HEAD" } else { "GET" };
    let mut stream = proxy.connect();
    let mut received = Vec::new();
    let first = format!("{method} /first?k={number} HTTP/1.1\r\nHost: a\r\n\r\n");
    let second = "GET /second HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(first.as_bytes()).unwrap();
    let divide = |received: &[u8]| agreed_answers(&Reader::all(), received, &[method, "GET"]);
    read(&mut stream, &mut received, LATE, |received| {
        Reader::STRICT.answers(received, &[method, "GET"]).is_whole && !received.is_empty()
    });
    // What the upstream server sends later must have come: it belongs to no request yet.
    read(&mut stream, &mut received, PAUSE, |_| false);
    // The server may have closed already.
    let _ = stream.write_all(second.as_bytes());
    read(&mut stream, &mut received, LATE, |_| false);
    let division = match divide(&received) {
        Ok(division) => division,
        Err(dissent) => return Some(format!(": {dissent}")),
    };
    let is_cut = !division.is_whole;
    let found = statuses(&received, &division.starts) + if is_cut { " cut" } else { "" };
    if found != payload.statuses {
        return Some(format!(" | {found} | "));
    }
    if !(is_cut || received.ends_with(b"\r\n\r\n/second")) {
        return Some(format!(": {}", received.escape_ascii()));
    }
    (!proxy.is_innocent_served(number)).then(|| String::from(": to another client"))
}

/// The upstream server answers when it has the head, and takes what of the content it gets for another request. The
/// connection ends with that answer: nothing of the content that comes later goes there, and no other request.
#[test]
fn an_answer_before_the_content_leaves_a_connection_that_carries_no_other_request() {
    const CONTENT: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let location = "location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection '';
        proxy_request_buffering off; }";
    let mut proxy = Proxy::start(location, Vec::new());
    for (number, split) in [0, 1, 20, CONTENT.len() - 1].into_iter().enumerate() {
        let mut stream = proxy.connect();
        let mut received = Vec::new();
        let (begin, rest) = CONTENT.split_at(split);
        let len = CONTENT.len();
        let first =
            format!("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n{begin}");
        stream.write_all(first.as_bytes()).unwrap();
        let has_early = |received: &[u8]| received.ends_with(b"\r\n\r\n/early");
        read(&mut stream, &mut received, LATE, has_early);
        assert!(has_early(&received), "{split} {}", received.escape_ascii());
        let next = format!("{rest}GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(next.as_bytes()).unwrap();
        read(&mut stream, &mut received, LATE, |_| false);
        let shown = String::from_utf8_lossy(&received);
        let division = agreed_answers(&Reader::all(), &received, &["POST", "GET"]).unwrap();
        assert_eq!(
            statuses(&received, &division.starts),
            "200 200",
            "{split} {shown}"
        );
        assert!(shown.ends_with("\r\n\r\n/after"), "{split} {shown}");
        assert!(proxy.is_innocent_served(number), "{split}");
        let bytes = proxy.recorder.bytes();
        let mut of_early = bytes
            .iter()
            .filter(|bytes| bytes.starts_with(b"POST /early"));
        let text = String::from_utf8_lossy(of_early.next().unwrap());
        let (_, behind) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(behind, begin, "{split}");
        proxy.recorder.forget();
    }
    proxy.server.stop();
}
