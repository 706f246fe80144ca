//! Random requests of a client.

use super::draw::Draw;
use crate::exchange::Leaves;
use crate::origin::{Script, ScriptEnd};

const METHODS: &[&str] = &[
    "GET", "GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "POST", "POST", "PUT",
    "DELETE", "OPTIONS", "PATCH", "PROPFIND", "MKCOL", "LOCK",
];

/// Stands before the last segment.
const SEGMENTS: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "a/",
    "a/b/",
    "a//b/",
    "//",
    "./",
    "a/../",
    "%41/",
    "a%20b/",
    "%2e%2e/x/",
    "a+b/",
    "a;b=c/",
    "%e4%f6/",
    "\u{e4}/",
    "a%2Fb/",
    "%25/",
    "a%3Fb/",
    "~a/",
    "a:b/",
    "a@b/",
    "a,b/",
    "(a)/",
    "%7e/",
    "a%23b/",
    "'a'/",
    "%c3%a4/",
];

const QUERIES: &[&str] = &[
    "",
    "",
    "",
    "&a=b",
    "&a=%20b",
    "&a=b+c",
    "&=",
    "&a=b?c",
    "&%41",
    "&a=b&a=c",
    "&\u{e4}",
    "&a=/x//y/../z",
    "&a=%0d%0a",
];

const FIELDS: &[&str] = &[
    "User-Agent: test/1",
    "Accept: */*",
    "Accept-Encoding: gzip",
    "Accept-Encoding: gzip, deflate, br",
    "Accept-Language: de",
    "Cookie: a=b; c=d",
    "Cookie: e=f",
    "Referer: http://localhost/x",
    "X-Forwarded-For: 1.2.3.4",
    "X-Forwarded-For: 5.6.7.8",
    "X-Own: 1",
    "X-Own: 2",
    "x-lower:3",
    "X-Empty:",
    "X-Under_score: 1",
    "X-Dot.ted: 1",
    "X-Bytes: \u{e4}\u{f6}",
    "X-Blanks:   a  b  ",
    "Range: bytes=0-1",
    "Range: bytes=1-",
    "Range: bytes=-2",
    "Range: bytes=0-0,2-2",
    "If-None-Match: \"tag\"",
    "If-None-Match: *",
    "If-Match: \"other\"",
    "If-Modified-Since: Thu, 29 Feb 2024 12:00:00 GMT",
    "If-Unmodified-Since: Thu, 01 Jan 2004 12:00:00 GMT",
    "If-Range: \"tag\"",
    "Authorization: Basic eDp5",
    "Content-Type: text/plain",
    "Content-Encoding: gzip",
    "Content-Language: de",
    "Cache-Control: no-cache",
    "Pragma: no-cache",
    "Origin: http://localhost",
    "Via: 1.0 x",
    "TE: trailers",
    "Upgrade: h2c",
    "Upgrade: websocket",
    "Keep-Alive: timeout=5",
    "Proxy-Connection: keep-alive",
    "Trailer: X",
    "Max-Forwards: 3",
    "Depth: 1",
    "Expect: 100-continue",
];

const FIELD_PERCENT: usize = 6;

const HOSTS: &[&str] = &[
    "Host: localhost",
    "Host: localhost",
    "Host: localhost",
    "Host: LOCALHOST",
    "Host: localhost:80",
    "Host: other.example",
    "host: localhost",
    "Host:localhost.",
];

const SIZES: &[usize] = &[
    0, 1, 2, 3, 10, 100, 299, 300, 301, 1000, 1023, 1024, 1025, 4096, 8192, 16384, 16385, 20000,
    40000, 70000,
];

/// What a client does on one connection.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    /// Sent one after the other.
    pub(crate) sends: Vec<Vec<u8>>,
    pub(crate) leaves: Leaves,
    /// The known differences that it may show.
    pub(crate) may: Vec<&'static str>,
}

impl Drawn {
    /// Has some clients leave early, and others send another request behind the first one.
    pub(crate) fn behave(
        &mut self,
        draw: &mut Draw,
        script: &mut Script,
        location: usize,
        number: usize,
    ) {
        let len = self.sends.iter().map(Vec::len).sum::<usize>();
        let head = self.sends.concat();
        let expects = head.windows(8).any(|bytes| bytes == b"\nExpect:");
        let line_len = head.windows(2).position(|two| two == b"\r\n").unwrap_or(0) + 2;
        let head_len = head
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or(0)
            + 4;
        match draw.below(100) {
            0..3 => self.leave(Leaves::HalfCloses, script),
            3..6 => self.leave(Leaves::Closes, script),
            6..12 if script.parts.len() > 1 && !expects => self.leaves = Leaves::WithinAnswer,
            12..14 => self.cut(line_len + draw.below(head_len - line_len)),
            14..17 if len > head_len => self.cut(head_len + draw.below(len - head_len)),
            17..29 if script.end == ScriptEnd::Keep && !script.is_early => {
                let (method, content) = draw.pick(&[
                    ("GET", "\r\n"),
                    ("GET", "\r\n"),
                    ("HEAD", "\r\n"),
                    ("PUT", "Content-Length: 5\r\n\r\nabcde"),
                    (
                        "POST",
                        "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
                    ),
                ]);
                let next = format!(
                    "{method} /L{location}/next?n={number} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{content}"
                );
                if draw.percent(50) {
                    self.sends.push(next.into_bytes());
                } else {
                    self.sends.last_mut().unwrap().extend(next.into_bytes());
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, leaves: Leaves, script: &mut Script) {
        self.leaves = leaves;
        script.is_late = true;
    }

    /// Sends so many bytes only.
    fn cut(&mut self, len: usize) {
        let mut bytes = self.sends.concat();
        bytes.truncate(len);
        self.sends = vec![bytes];
        self.leaves = Leaves::Closes;
    }
}

/// A request for the script `number` in this location.
pub(crate) fn draw(draw: &mut Draw, location: usize, number: usize) -> Drawn {
    let sends = sends(draw, location, number);
    let names_own = sends
        .concat()
        .windows(18)
        .any(|bytes| bytes == b"Connection: X-Own\r");
    Drawn {
        sends,
        leaves: Leaves::AtEnd,
        may: if names_own {
            vec!["named-by-connection"]
        } else {
            Vec::new()
        },
    }
}

/// The parts of the request, sent one after the other.
fn sends(draw: &mut Draw, location: usize, number: usize) -> Vec<Vec<u8>> {
    let method = draw.pick(METHODS);
    let version = if draw.percent(12) {
        "HTTP/1.0"
    } else {
        "HTTP/1.1"
    };
    let (segment, query) = (draw.pick(SEGMENTS), draw.pick(QUERIES));
    let mut head =
        format!("{method} /L{location}/{segment}s{number}?n={number}{query} {version}\r\n");
    let mut lines = vec![draw.pick(HOSTS)];
    lines.extend(draw.some(FIELD_PERCENT, FIELDS));
    if draw.percent(90) || version == "HTTP/1.0" && draw.percent(50) {
        lines.push("Connection: close");
    } else if draw.percent(40) {
        lines.push(draw.pick(&[
            "Connection: keep-alive",
            "Connection: upgrade",
            "Connection: X-Own",
            "Connection: TE, close",
        ]));
    }
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    let has_content = matches!(method, "POST" | "PUT" | "PATCH" | "PROPFIND") || draw.percent(8);
    let mut bytes = head.into_bytes();
    if has_content && draw.percent(90) {
        let size = draw.pick(SIZES);
        let content: Vec<u8> = (0..size)
            .map(|index| b'A' + u8::try_from(index / 5 % 26).unwrap())
            .collect();
        if version == "HTTP/1.1" && draw.percent(40) {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            let size_max = draw.pick(&[3, 100, 5000, 100_000]);
            for chunk in content.chunks(size_max) {
                bytes.extend(format!("{:X}\r\n", chunk.len()).bytes());
                bytes.extend(chunk);
                bytes.extend(b"\r\n");
            }
            bytes.extend(
                draw.pick(&["0\r\n\r\n", "0\r\n\r\n", "0\r\nX-Trailer: 1\r\n\r\n"])
                    .as_bytes(),
            );
        } else {
            bytes.extend(format!("Content-Length: {size}\r\n\r\n").bytes());
            bytes.extend(content);
        }
    } else {
        bytes.extend(b"\r\n");
    }
    if draw.percent(3) {
        let at = draw.below(bytes.len());
        let rest = bytes.split_off(at);
        return vec![bytes, rest];
    }
    vec![bytes]
}
