//! Sessions, each at a port of its own: what the client does, what it receives, what is logged.

use super::behind::{Behind, Kind};
use super::{lines, load_module};
use crate::content::Directory;
use crate::server::{Program, command_of, free_port};
use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

/// What a client does.
#[derive(Clone, Copy, Debug)]
enum Act {
    Send(&'static [u8]),
    /// Reads this many bytes.
    Read(usize),
    Finish,
}

use Act::{Finish, Read as Take, Send};

struct Case {
    name: &'static str,
    /// Directives of its server; `%ECHO%` and its like are addresses.
    server: &'static str,
    acts: &'static [Act],
    /// The servers behind that get a connection.
    reached: &'static [&'static str],
}

const fn case(
    name: &'static str,
    server: &'static str,
    acts: &'static [Act],
    reached: &'static [&'static str],
) -> Case {
    Case {
        name,
        server,
        acts,
        reached,
    }
}

/// The ClientHello of TLS 1.3 for `a.example`, with `h2` and `http/1.1`.
const HELLO: &[u8] = b"\x16\x03\x01\x00\x6c\x01\x00\x00\x68\x03\x03\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\
\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x00\x00\x02\x13\x01\x01\x00\x00\x3d\
\x00\x00\x00\x0e\x00\x0c\x00\x00\x09a.example\
\x00\x10\x00\x0e\x00\x0c\x02h2\x08http/1.1\
\x00\x2b\x00\x05\x04\x03\x04\x03\x03\
\x00\x0a\x00\x04\x00\x02\x00\x1d\
\x00\x15\x00\x04\x00\x00\x00\x00";

const CASES: &[Case] = &[
    case(
        "an echo",
        "proxy_pass %ECHO%;",
        &[Send(b"some bytes"), Take(10), Finish],
        &["ECHO"],
    ),
    case(
        "the server ends",
        "proxy_pass %HELLO%;",
        &[Take(6)],
        &["HELLO"],
    ),
    case(
        "the client ends at once",
        "proxy_pass %ECHO%;",
        &[Finish],
        &["ECHO"],
    ),
    case(
        "half close off",
        "proxy_pass %LATE%;",
        &[Send(b"question"), Finish],
        &["LATE"],
    ),
    case(
        "half close on",
        "proxy_pass %LATE%; proxy_half_close on;",
        &[Send(b"question"), Finish],
        &["LATE"],
    ),
    case(
        "half close on, the server first",
        "proxy_pass %HALF%; proxy_half_close on;",
        &[Take(6), Send(b"more"), Finish],
        &["HALF"],
    ),
    case(
        "another server",
        "proxy_pass dead_and_echo;",
        &[Send(b"x"), Take(1), Finish],
        &["ECHO"],
    ),
    case("none lives", "proxy_pass dead;", &[], &[]),
    case("none lives any more", "proxy_pass dead;", &[], &[]),
    case("one dead server", "proxy_pass %DEAD%;", &[], &[]),
    case(
        "next upstream off",
        "proxy_pass fresh; proxy_next_upstream off;",
        &[],
        &[],
    ),
    case(
        "return",
        "return \"you are $remote_addr at $server_addr, $protocol\\n\";",
        &[],
        &[],
    ),
    case("return nothing", "return \"\";", &[], &[]),
    case("deny", "proxy_pass %ECHO%; deny all;", &[], &[]),
    case(
        "allow",
        "proxy_pass %ECHO%; allow 127.0.0.0/8; deny all;",
        &[Send(b"x"), Take(1), Finish],
        &["ECHO"],
    ),
    case(
        "variables",
        "set $where echoing; proxy_pass $where;",
        &[Send(b"x"), Take(1), Finish],
        &["ECHO"],
    ),
    case(
        "a map of a map",
        "proxy_pass $mapped;",
        &[Send(b"x"), Take(1), Finish],
        &["ECHO"],
    ),
    case(
        "an address in a variable",
        "set $where %ECHO%; proxy_pass $where;",
        &[Send(b"x"), Take(1), Finish],
        &["ECHO"],
    ),
    case(
        "a name without resolver",
        "set $where nosuch.invalid:1; proxy_pass $where;",
        &[],
        &[],
    ),
    case(
        "a name without port",
        "set $where nosuch; proxy_pass $where;",
        &[],
        &[],
    ),
    case(
        "proxy_protocol on",
        "proxy_pass %LATE%; proxy_protocol on; proxy_half_close on;",
        &[Send(b"x"), Finish],
        &["LATE"],
    ),
    case(
        "proxy_protocol read, told to nothing",
        "proxy_pass %ECHO%;",
        &[
            Send(b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 2000\r\nrest"),
            Take(4),
            Finish,
        ],
        &["ECHO"],
    ),
    case(
        "proxy_protocol believed",
        "set_real_ip_from 127.0.0.1; proxy_pass %LATE%; proxy_protocol on; proxy_half_close on;",
        &[
            Send(b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 2000\r\nrest"),
            Finish,
        ],
        &["LATE"],
    ),
    case(
        "proxy_protocol broken",
        "proxy_pass %ECHO%;",
        &[Send(b"PROXY TCP4 192.0.2.1\n")],
        &[],
    ),
    case(
        "preread of a hello",
        "ssl_preread on; proxy_pass %ECHO%;",
        &[Send(HELLO), Take(113), Finish],
        &["ECHO"],
    ),
    case(
        "preread by name",
        "ssl_preread on; proxy_pass $by_name;",
        &[Send(HELLO), Take(113), Finish],
        &["ECHO"],
    ),
    case(
        "preread of something else",
        "ssl_preread on; proxy_pass %ECHO%;",
        &[Send(b"SSH-2.0-x\r\n"), Take(11), Finish],
        &["ECHO"],
    ),
    case(
        "preread that is not whole",
        "ssl_preread on; proxy_pass %ECHO%;",
        &[Send(b"\x16\x03\x01\x00\x6c\x01"), Finish],
        &[],
    ),
    case(
        "a rate",
        "proxy_pass %HELLO%; proxy_download_rate 1k;",
        &[Take(6)],
        &["HELLO"],
    ),
];

/// Cases whose `listen` has `proxy_protocol`.
const HEADED: &[&str] = &[
    "proxy_protocol read, told to nothing",
    "proxy_protocol believed",
    "proxy_protocol broken",
];

const SHARED: &str = "
    log_format f '$remote_addr $protocol $status $bytes_received/$bytes_sent $session_time [$upstream_addr] $upstream_bytes_sent/'
        '$upstream_bytes_received $upstream_connect_time $upstream_first_byte_time $upstream_session_time '
        '$proxy_protocol_addr:$proxy_protocol_port $realip_remote_addr $ssl_preread_server_name $ssl_preread_protocol '
        '$ssl_preread_alpn_protocols $where $hostname';
    map $protocol $inner { TCP echoing; } map $inner $mapped { ~^(?<first>echo)(.*) $first$2; }
    map $ssl_preread_server_name $by_name { hostnames; .example echoing; default dead; }
    geo $near { default dead; 127.0.0.0/8 echoing; } split_clients $remote_addr $part { 40% one; * two; }
    upstream echoing { server %ECHO%; }
    upstream dead_and_echo { server %DEAD%; server %ECHO%; }
    upstream dead { server %DEAD%; server %DEAD% weight=2; }
    upstream fresh { server %DEAD%; server %ECHO% backup; }
";

/// What each case came to.
pub(super) fn run(program: Program) -> Vec<String> {
    let directory = Directory::new();
    let out = directory.path();
    let kinds = [Kind::Echo, Kind::Hello, Kind::Late, Kind::Half];
    let behind = kinds.map(|kind| (format!("{kind:?}").to_uppercase(), Behind::start(kind)));
    let ports: Vec<u16> = CASES.iter().map(|_| free_port()).collect();
    let mut names: Vec<(u16, String)> = behind
        .iter()
        .map(|(name, one)| (one.port, name.clone()))
        .collect();
    names.push((free_port(), String::from("DEAD")));
    let mut text = format!(
        "{} daemon off; master_process off; pid pid; error_log {out}/error.log info; events {{ worker_connections 512; }}\n\
         stream {{ {SHARED} access_log {out}/access.log f;\n",
        load_module(),
        out = out.display()
    );
    for (case, port) in CASES.iter().zip(&ports) {
        let header = if HEADED.contains(&case.name) {
            " proxy_protocol"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "server {{ listen 127.0.0.1:{port}{header}; {} }}",
            case.server
        );
    }
    text.push_str("}\n");
    for (port, name) in &names {
        text = text.replace(&format!("%{name}%"), &format!("127.0.0.1:{port}"));
    }
    names.extend(ports.iter().map(|port| (*port, String::from("HERE"))));
    let probed = free_port();
    text = text.replace(
        "stream {",
        &format!("stream {{ server {{ listen 127.0.0.1:{probed}; return ok; }}"),
    );
    let running = Running::start(program, out, &text, probed);
    let mut seen = Vec::new();
    for (case, port) in CASES.iter().zip(&ports) {
        let mut shown = format!("{}: {}\n", case.name, act(*port, case.acts));
        for name in case.reached {
            let (_, server) = behind.iter().find(|(known, _)| known == name).unwrap();
            let _ = writeln!(
                shown,
                "{name} received {:?}",
                lines::of_header(&server.take())
            );
        }
        let (access, errors) = running.new_lines(out);
        for line in access {
            let _ = writeln!(shown, "{}", lines::named(&line, &names));
        }
        for line in errors
            .iter()
            .filter_map(|line| lines::of_error_log(line, &names))
        {
            let _ = writeln!(shown, "{line}");
        }
        if case.name.starts_with("preread") {
            shown = lines::without_received(&shown);
        }
        if case.name.starts_with("half close on") {
            // Either end may be seen first.
            shown = shown.replace("upstream disconnected", "client disconnected");
        }
        seen.push(shown);
    }
    seen
}

/// A server, ended when it is dropped.
struct Running {
    child: Child,
    /// Lines that were read of its logs.
    read: std::cell::Cell<(usize, usize)>,
}

impl Running {
    fn start(program: Program, out: &Path, text: &str, port: u16) -> Self {
        fs::write(out.join("nginx.conf"), text).unwrap();
        let mut command = command_of(program, out);
        let stderr = fs::File::create(out.join("stderr")).unwrap();
        command
            .arg("-p")
            .arg(out)
            .arg("-c")
            .arg(out.join("nginx.conf"));
        let child = command
            .args(["-e", "error.log"])
            .stdin(Stdio::null())
            .stderr(stderr)
            .spawn();
        let running = Self {
            child: child.unwrap(),
            read: std::cell::Cell::default(),
        };
        for _ in 0..WAITS_MAX {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                // That was a session.
                running.new_lines(out);
                return running;
            }
            thread::park_timeout(WAIT);
        }
        let said = fs::read_to_string(out.join("stderr")).unwrap_or_default();
        panic!("{program:?} does not start:\n{said}");
    }

    /// The lines of both logs since the last call, once the access log has one more.
    fn new_lines(&self, out: &Path) -> (Vec<String>, Vec<String>) {
        let read = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
        let (known_access, known_errors) = self.read.get();
        for _ in 0..WAITS_MAX {
            let is_written = read("access.log").matches('\n').count() > known_access;
            if is_written {
                break;
            }
            thread::park_timeout(WAIT);
        }
        let access: Vec<String> = read("access.log").lines().map(String::from).collect();
        let errors = lines::joined(&read("error.log"));
        self.read.set((access.len(), errors.len()));
        let new = |all: Vec<String>, known| all.into_iter().skip(known).collect();
        (new(access, known_access), new(errors, known_errors))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Does what a client does; returns what it received, and how that ended.
fn act(port: u16, acts: &[Act]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut received = Vec::new();
    for act in acts {
        match act {
            Send(bytes) => stream.write_all(bytes).unwrap(),
            Take(len) => {
                let mut bytes = vec![0; *len];
                let read = stream.read_exact(&mut bytes);
                assert!(read.is_ok(), "{read:?} of {len} bytes");
                received.extend(bytes);
            }
            Finish => stream.shutdown(Shutdown::Write).unwrap(),
        }
    }
    let end = match stream.read_to_end(&mut received) {
        Ok(_) => "end",
        Err(error) if error.kind() == ErrorKind::ConnectionReset => "end",
        Err(error) => panic!("{error}"),
    };
    format!("{:?} {end}", String::from_utf8_lossy(&received))
}

/// How often a log is looked at, and how long in between: 10 s in all.
const WAITS_MAX: u32 = 1000;
const WAIT: Duration = Duration::from_millis(10);
