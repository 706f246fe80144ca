//! nginx's `http2_…` directives, beside nginx 1.22: which are taken, and what a client sees of them.

use crate::site::{Site, free_address, wait_for};
use mill_http::h2::connection::{Connection, Event};
use mill_http::h2::limits::Limits;
use mill_http::h2::settings::Settings;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const NGINX: &str = "/usr/sbin/nginx";

/// A site of Millstream, and one of nginx.
fn both() -> [(&'static str, Site); 2] {
    ["millstream", "nginx"].map(|program| {
        let site = Site::new();
        if program == "nginx" {
            fs::remove_file(site.path("nginx")).unwrap();
            std::os::unix::fs::symlink(NGINX, site.path("nginx")).unwrap();
        }
        (program, site)
    })
}

#[test]
fn directives_are_taken_and_refused_as_in_nginx_with_a_word_on_those_that_mean_nothing() {
    let without = "directive has no effect in ";
    let buffers = "use \"large_client_header_buffers\"";
    let timeouts = "use \"keepalive_timeout\" and \"client_header_timeout\"";
    let push = "nothing is pushed";
    // Millstream's exit code and words, then nginx's code.
    for (line, code, said, of_nginx) in [
        ("http2_max_concurrent_streams 7;", 0, "", 0),
        ("http2_max_concurrent_streams many;", 1, "invalid number", 1),
        ("http2_body_preread_size 20000;", 0, "", 0),
        ("http2_body_preread_size much;", 1, "invalid value", 1),
        ("http2_body_preread_size 2147483647;", 0, "", 0),
        (
            "http2_body_preread_size 2048m;",
            1,
            "the maximum body preread buffer size is 2147483647",
            1,
        ),
        ("http2_chunk_size 4k;", 0, "", 0),
        ("http2_chunk_size 0;", 1, "cannot be zero", 1),
        ("http2_pool_size 4k;", 0, without, 0),
        ("http2_streams_index_size 64;", 0, without, 0),
        ("http2_max_field_size 4k;", 0, buffers, 0),
        ("http2_max_header_size 16k;", 0, buffers, 0),
        (
            "http2_max_requests 100;",
            0,
            "use \"keepalive_requests\"",
            0,
        ),
        ("http2_idle_timeout 3m;", 0, timeouts, 0),
        ("http2_recv_timeout 30s;", 0, timeouts, 0),
        ("http2_push /a.css;", 0, push, 0),
        ("http2_push off;", 0, push, 0),
        ("http2_push_preload on;", 0, push, 0),
        ("http2_max_concurrent_pushes 3;", 0, push, 0),
        (
            "} http2_recv_buffer_size 256k; server { listen unix:/tmp/unused;",
            0,
            without,
            0,
        ),
        // Later versions have these.
        ("http2 on;", 0, "", 1),
        ("http2 maybe;", 1, "it must be \"on\" or \"off\"", 1),
        ("http2_extended_connect off;", 0, "", 1),
    ] {
        for (program, site) in both() {
            let address = free_address();
            site.configure(
                "",
                &format!("server {{ listen {address} http2;\n{line}\n}}"),
            );
            let output = site.nginx(&["-t"]);
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let expected = if program == "nginx" { of_nginx } else { code };
            assert_eq!(
                output.status.code(),
                Some(expected),
                "{program}: {line}: {stderr}"
            );
            if program == "millstream" {
                assert!(stderr.contains(said), "{line}: {stderr}");
                let is_named = stderr.contains("nginx.conf:");
                assert!(is_named || said.is_empty(), "{line}: {stderr}");
            }
        }
    }
}

/// A frame: type, flags, stream, payload.
type Frame = (u8, u8, u32, Vec<u8>);

const DATA: u8 = 0;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

/// A connection of HTTP/2 in clear, and all that has come.
struct Client {
    stream: TcpStream,
    protocol: Connection,
    unread: Vec<u8>,
    frames: Vec<Frame>,
    /// Statuses of final answers, by stream.
    statuses: Vec<(u32, u16)>,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = wait_for("the server", || TcpStream::connect(address).ok());
        let time_max = Some(Duration::from_secs(20));
        stream.set_read_timeout(time_max).unwrap();
        let settings = Settings {
            initial_window_size: 1 << 20,
            ..Settings::default()
        };
        let protocol = Connection::client(settings, Limits::default());
        let (unread, frames, statuses) = Default::default();
        Self {
            stream,
            protocol,
            unread,
            frames,
            statuses,
        }
    }

    /// A request; one that does not end waits for content.
    fn ask(&mut self, path: &str, fields: &str, ends: bool) -> u32 {
        let method = if ends { "GET" } else { "POST" };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let stream = self.protocol.open().unwrap();
        self.protocol
            .emit_request(stream, b"http", head.as_bytes(), ends);
        stream
    }

    /// Exchanges bytes until this holds.
    fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            self.stream.write_all(self.protocol.output()).unwrap();
            self.protocol.output().clear();
            let mut bytes = [0; 16 * 1024];
            let len = self.stream.read(&mut bytes).expect(what);
            assert!(len > 0, "{what}: closed behind {:?}", self.frames);
            self.unread.extend_from_slice(&bytes[..len]);
            self.take();
        }
    }

    fn take(&mut self) {
        loop {
            let (len, event) = self.protocol.on_bytes(&self.unread, 0);
            if let Event::NeedMore(_) = event {
                return;
            }
            if let Event::Answer { stream, status, .. } = event {
                self.statuses.push((stream, status));
            }
            let frame: Vec<u8> = self.unread.drain(..len).collect();
            let number = u32::from_be_bytes(frame[5..9].try_into().unwrap());
            self.frames
                .push((frame[3], frame[4], number, frame[9..].to_vec()));
        }
    }

    fn of_kind(&self, kind: u8) -> Vec<&Frame> {
        self.frames.iter().filter(|frame| frame.0 == kind).collect()
    }

    /// Values of SETTINGS by their number.
    fn setting(&self, number: u16) -> Option<u32> {
        let entries = self.of_kind(SETTINGS)[0].3.chunks_exact(6);
        let found = entries
            .into_iter()
            .find(|entry| entry[..2] == number.to_be_bytes());
        found.map(|entry| u32::from_be_bytes(entry[2..].try_into().unwrap()))
    }
}

/// Both servers with these directives, each asked the same.
fn beside(directives: &str, check: impl Fn(&str, &mut Client)) {
    for (program, site) in both() {
        let [address, silent] = [(); 2].map(|()| free_address());
        let content: Vec<u8> = (0..=250_u8).cycle().take(100_000).collect();
        fs::write(site.path("large"), content).unwrap();
        site.configure(
            "",
            &format!(
                "server {{ listen {address} http2; {directives} location = /taken {{ proxy_pass http://{silent}; }} }}"
            ),
        );
        if program == "nginx" {
            site.start_other();
        } else {
            site.start();
        }
        check(program, &mut Client::connect(address));
    }
}

#[test]
fn settings_tell_a_client_what_the_directives_allow() {
    for (directives, streams, window) in [
        ("", 128, 65_536),
        (
            "http2_max_concurrent_streams 7; http2_body_preread_size 20000;",
            7,
            20_000,
        ),
    ] {
        beside(directives, |program, client| {
            client.until("SETTINGS", |client| !client.of_kind(SETTINGS).is_empty());
            let found = [3, 4].map(|number| client.setting(number));
            assert_eq!(found, [Some(streams), Some(window)], "{program}");
            // nginx takes larger frames.
            let frame = if program == "nginx" {
                16_777_215
            } else {
                16_384
            };
            assert_eq!(client.setting(5), Some(frame), "{program}");
        });
    }
}

#[test]
fn a_stream_beyond_those_that_are_allowed_is_refused_alone() {
    beside("http2_max_concurrent_streams 3;", |program, client| {
        let waiting = [(); 3].map(|()| client.ask("/taken", "Content-Length: 5\r\n", false));
        let refused = client.ask("/large", "", true);
        client.until("a refusal", |client| !client.of_kind(RST_STREAM).is_empty());
        let resets = client.of_kind(RST_STREAM);
        let expected = (RST_STREAM, 0, refused, vec![0, 0, 0, 7]);
        assert_eq!(resets, [&expected], "{program}: {waiting:?}");
    });
}

#[test]
fn content_comes_in_frames_of_the_chunk_size() {
    for (directives, size) in [
        ("http2_chunk_size 4k;", 4096),
        ("http2_chunk_size 1000;", 1000),
    ] {
        beside(directives, |program, client| {
            client.ask("/large", "", true);
            let ended = |client: &Client| client.of_kind(DATA).iter().any(|frame| frame.1 & 1 == 1);
            client.until("the content", ended);
            let lengths = client.of_kind(DATA).into_iter().map(|frame| frame.3.len());
            let lengths: Vec<usize> = lengths.collect();
            assert_eq!(lengths.iter().sum::<usize>(), 100_000, "{program}");
            assert_eq!(lengths.iter().max(), Some(&size), "{program}");
        });
    }
}

#[test]
fn the_last_request_of_a_connection_and_heads_that_are_too_large_are_answered_so() {
    beside("keepalive_requests 2;", |program, client| {
        let streams = [(); 2].map(|()| client.ask("/index.html", "", true));
        client.until("GOAWAY", |client| {
            !client.of_kind(GOAWAY).is_empty() && client.statuses.len() == 2
        });
        let goaway = &client.of_kind(GOAWAY)[0].3;
        let last = u32::from_be_bytes(goaway[..4].try_into().unwrap());
        assert_eq!((last, &goaway[4..]), (streams[1], &[0; 4][..]), "{program}");
        assert_eq!(
            client.statuses,
            streams.map(|stream| (stream, 200)),
            "{program}"
        );
    });
    beside("large_client_header_buffers 2 1k;", |program, client| {
        let long = format!("A: {}\r\n", "a".repeat(1100));
        let many: String = (0..30)
            .map(|number| format!("A{number}: {}\r\n", "a".repeat(100)))
            .collect();
        if program == "nginx" {
            // It counts what was received, and gives the connection up.
            client.ask("/index.html", &many, true);
            client.until("GOAWAY", |client| !client.of_kind(GOAWAY).is_empty());
            assert_eq!(client.of_kind(GOAWAY)[0].3[4..], [0, 0, 0, 11]);
            return;
        }
        let streams = [&long, &many, ""].map(|fields| client.ask("/index.html", fields, true));
        client.until("answers", |client| client.statuses.len() == 3);
        client.statuses.sort_unstable();
        let expected: Vec<(u32, u16)> = streams.into_iter().zip([400, 400, 200]).collect();
        assert_eq!(client.statuses, expected);
    });
}
