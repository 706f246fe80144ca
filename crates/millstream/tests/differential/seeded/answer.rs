//! Random answers of an upstream server.

use super::draw::Draw;
use crate::origin::{Script, ScriptEnd};

/// A script, and which known differences it may show.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) script: Script,
    /// What nginx gets in its place: an answer to which nginx does what Millstream does to the script.
    pub(crate) reference: Option<Script>,
    pub(crate) may: Vec<&'static str>,
}

const STATUSES: &[&str] = &[
    "200 OK",
    "200 OK",
    "200 OK",
    "200 OK",
    "200 OK",
    "200 OK",
    "200 OK",
    "200 OK",
    "201 Created",
    "202 Accepted",
    "203 Other",
    "204 No Content",
    "205 Reset Content",
    "206 Partial Content",
    "207 Multi-Status",
    "226 IM Used",
    "299 It depends",
    "300 Many",
    "301 Moved",
    "302 Found",
    "303 See Other",
    "304 Not Modified",
    "307 There",
    "308 There",
    "400 Bad",
    "401 Who",
    "402 Pay",
    "403 No",
    "404 Not Found",
    "404 Nowhere",
    "405 Not So",
    "406 No",
    "408 Slow",
    "409 Conflict",
    "410 Gone",
    "412 Failed",
    "413 Big",
    "414 Long",
    "416 Range",
    "418 Tea",
    "421 Wrong",
    "422 What",
    "429 Many",
    "431 Big",
    "444 Odd",
    "451 Law",
    "494 Odd",
    "495 Odd",
    "497 Odd",
    "499 Odd",
    "500 Broken",
    "500 Broken",
    "501 No",
    "502 Bad",
    "503 Busy",
    "503 Busy",
    "504 Late",
    "505 No",
    "507 Full",
    "599 Odd",
    "600 Odd",
    "999 Odd",
];

const FIELDS: &[&str] = &[
    "Server: theirs",
    "Date: Thu, 29 Feb 2024 12:00:00 GMT",
    "X-Own: 1",
    "x-own:2",
    "X-Pad: 3",
    "X-Powered-By: x/1",
    "ETag: \"tag\"",
    "ETag: W/\"weak\"",
    "Last-Modified: Thu, 29 Feb 2024 12:00:00 GMT",
    "Last-Modified: yesterday",
    "Cache-Control: max-age=1",
    "Cache-Control: no-store, private",
    "Expires: Thu, 29 Feb 2024 12:00:00 GMT",
    "Expires: 0",
    "Accept-Ranges: bytes",
    "Accept-Ranges: none",
    "Vary: Accept-Encoding",
    "Via: 1.1 x",
    "Age: 5",
    "Keep-Alive: timeout=5",
    "Set-Cookie: a=1; Domain=origin.example; Path=/x",
    "Set-Cookie: b=2; path=/; secure",
    "Set-Cookie: c",
    "Location: http://origin.example/a",
    "Location: /path/b?c=d",
    "Location: relative",
    "Refresh: 5; url=http://origin.example/a",
    "Link: </a.css>; rel=preload",
    "Link: </b.css>; rel=preload",
    "Content-Disposition: attachment",
    "Content-Language: de",
    "Content-Location: /elsewhere",
    "Content-Range: bytes 0-2/10",
    "WWW-Authenticate: Basic realm=\"x\"",
    "Allow: GET, HEAD",
    "Retry-After: 5",
    "Pragma: no-cache",
    "P3P: CP=x",
    "Trailer: T",
    "Upgrade: h2c",
    "X-Accel-Expires: 10",
    "X-Accel-Charset: utf-8",
    "X-Accel-Charset: koi8-r",
    "X-Accel-Buffering: no",
    "X-Accel-Buffering: yes",
    "X-Accel-Limit-Rate: 4000000",
    "X-Accel-Redirect: /secret/a.txt",
    "X-Accel-Redirect: @named",
    "X-Accel-Redirect: /nowhere/at/all",
    "X-Empty:",
    "X-Blanks:   a  b  ",
    "X-Bytes: \u{e4}\u{f6}",
    "Status: 404 Not Found",
    "Alt-Svc: h3=\":443\"",
];

const FIELD_PERCENT: usize = 5;

const TYPES: &[&str] = &[
    "",
    "Content-Type: text/plain",
    "Content-Type: text/plain",
    "Content-Type: text/css; charset=koi8-r",
    "Content-Type: application/octet-stream",
    "Content-Type: text/html;charset=UTF-8",
    "content-type: TEXT/PLAIN",
];

const SIZES: &[usize] = &[
    0, 0, 1, 2, 3, 10, 19, 20, 21, 100, 1000, 1023, 1024, 1025, 1460, 1461, 4000, 4095, 4096, 4097,
    5000, 8192, 16384, 32768, 40000, 65536, 70000, 200_000,
];

/// How the content is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunks,
    UntilClose,
    /// A length that is larger than the content, and the connection closes.
    Short,
    /// More content than the length says.
    Long,
    /// Chunks without the last one.
    CutChunks,
    /// Chunks that begin well.
    BadChunks,
    /// Bytes behind the last chunk.
    ExtraChunks,
}

const FRAMINGS: &[Framing] = &[
    Framing::Length,
    Framing::Length,
    Framing::Length,
    Framing::Length,
    Framing::Length,
    Framing::Length,
    Framing::Length,
    Framing::Length,
    Framing::Chunks,
    Framing::Chunks,
    Framing::Chunks,
    Framing::Chunks,
    Framing::UntilClose,
    Framing::UntilClose,
    Framing::Short,
    Framing::Long,
    Framing::CutChunks,
    Framing::BadChunks,
    Framing::ExtraChunks,
];

/// Answers that are none, or none that both understand.
const MALFORMED: &[&str] = &[
    "hello",
    "HTTP/1.1 2x0 OK\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nab",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nab",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "HTTP/1.1 200 OK\r\nX: a\x01b\r\n\r\n",
    "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
];

/// An answer that nginx refuses too.
const REFUSED_BY_ALL: &str = "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n";

pub(crate) fn draw(draw: &mut Draw) -> Drawn {
    match draw.below(100) {
        0..3 => malformed(draw),
        3..5 => fault(draw, ""),
        5..7 => fault(draw, "HTTP/1.1 200 OK\r\nContent-Le"),
        7..8 => whole(
            b"HTTP/1.1 200 OK\r\nX: "
                .iter()
                .copied()
                .chain([b'a'; 9000])
                .collect(),
            ScriptEnd::Close,
        ),
        8..9 => interim(draw),
        _ => well_formed(draw),
    }
}

fn whole(bytes: Vec<u8>, end: ScriptEnd) -> Drawn {
    let script = Script {
        is_early: false,
        is_late: false,
        parts: vec![bytes],
        end,
    };
    Drawn {
        script,
        reference: None,
        may: Vec::new(),
    }
}

fn malformed(draw: &mut Draw) -> Drawn {
    let mut drawn = whole(draw.pick(MALFORMED).as_bytes().to_vec(), ScriptEnd::Close);
    let refused = whole(REFUSED_BY_ALL.as_bytes().to_vec(), ScriptEnd::Close);
    drawn.reference = Some(refused.script);
    drawn.may.push("malformed-answers");
    drawn
}

/// The connection ends within the head.
fn fault(draw: &mut Draw, head: &str) -> Drawn {
    let end = draw.pick(&[ScriptEnd::Close, ScriptEnd::Reset]);
    whole(head.as_bytes().to_vec(), end)
}

fn interim(draw: &mut Draw) -> Drawn {
    let mut drawn = well_formed(draw);
    let first = draw.pick(&["100 Continue", "102 Processing", "103 Early Hints"]);
    drawn.reference = Some(drawn.script.clone());
    let mut bytes = format!("HTTP/1.1 {first}\r\n\r\n").into_bytes();
    bytes.append(&mut drawn.script.parts[0]);
    drawn.script.parts[0] = bytes;
    drawn.may.push("interim-answers");
    drawn
}

fn well_formed(draw: &mut Draw) -> Drawn {
    let (mut status, framing, mut size) =
        (draw.pick(STATUSES), draw.pick(FRAMINGS), draw.pick(SIZES));
    let mut may = Vec::new();
    if draw.percent(2) {
        status = draw.pick(&["200", "404 "]);
        may.push("empty-phrase");
    }
    let is_bare = status.starts_with("204") || status.starts_with("304");
    let mut framing = framing;
    if is_bare {
        (framing, size) = (Framing::Length, 0);
    }
    let version = if draw.percent(15) {
        "HTTP/1.0"
    } else {
        "HTTP/1.1"
    };
    let is_chunked = matches!(
        framing,
        Framing::Chunks | Framing::CutChunks | Framing::BadChunks | Framing::ExtraChunks
    );
    let version = if is_chunked { "HTTP/1.1" } else { version };
    let mut lines = draw.some(FIELD_PERCENT, FIELDS);
    keep_first(&mut lines, "Location: ");
    keep_first(&mut lines, "X-Accel-Redirect: ");
    if lines
        .iter()
        .any(|line| line.starts_with("X-Accel-Redirect"))
    {
        may.push("charset-of-a-redirecting-answer");
    }
    let kind = draw.pick(TYPES);
    if !kind.is_empty() {
        lines.push(kind);
        if draw.percent(4) {
            lines.push(draw.pick(&TYPES[1..]));
            may.push("several-content-types");
        }
    }
    if lines.iter().any(|line| line.starts_with("X-Accel-Charset")) {
        may.extend(["unknown-charset", "charset-of-a-redirecting-answer"]);
    }
    let expires = lines.iter().filter(|line| line.starts_with("Expires: "));
    if expires.count() > 1 {
        may.push("one-expires");
    }
    let ranges = lines
        .iter()
        .filter(|line| line.starts_with("Accept-Ranges"));
    if ranges.count() > 1 {
        may.push("one-accept-ranges");
    }
    if lines.iter().filter(|line| line.starts_with("ETag")).count() > 1 {
        may.push("one-etag");
    }
    if draw.percent(15) {
        lines.push(draw.pick(&[
            "Connection: close",
            "Connection: keep-alive",
            "Connection: x, close",
        ]));
    }
    let mut head = format!("{version} {status}\r\n");
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    let content: Vec<u8> = (0..size)
        .map(|index| b'a' + u8::try_from(index / 7 % 26).unwrap())
        .collect();
    let mut bytes = head.into_bytes();
    let mut end = if draw.percent(20) {
        ScriptEnd::Close
    } else {
        ScriptEnd::Keep
    };
    match framing {
        Framing::Length if is_bare && draw.percent(70) => bytes.extend(b"\r\n"),
        Framing::Length if is_bare => {
            may.push(if status.starts_with("204") {
                "length-in-204"
            } else {
                "no-length-in-304"
            });
            bytes.extend(b"Content-Length: 0\r\n\r\n");
        }
        Framing::Length => bytes.extend(with_length(&content, size)),
        Framing::Short => {
            bytes.extend(with_length(&content, size + 5));
            end = draw.pick(&[ScriptEnd::Close, ScriptEnd::Close, ScriptEnd::Keep]);
        }
        Framing::Long => bytes.extend(with_length(&content, size.saturating_sub(3))),
        Framing::UntilClose => {
            bytes.extend(b"\r\n");
            bytes.extend(&content);
            end = ScriptEnd::Close;
        }
        _ => {
            bytes.extend(b"Transfer-Encoding: chunked\r\n\r\n");
            bytes.extend(chunks(draw, &content, framing));
            if framing == Framing::CutChunks {
                end = ScriptEnd::Close;
            }
        }
    }
    if matches!(
        framing,
        Framing::Short | Framing::CutChunks | Framing::BadChunks
    ) {
        may.push("content-before-a-fault");
    }
    let mut parts = vec![bytes];
    if draw.percent(8) && parts[0].len() > 1 {
        // The end of the head is in one part: to HEAD nothing is sent behind it.
        let end = parts[0]
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or(0);
        let at = draw.below(parts[0].len());
        let at = if at > end && at < end + 4 { end } else { at };
        let rest = parts[0].split_off(at);
        parts.push(rest);
    }
    // Content that is not read would be another request.
    let is_early = draw.percent(3);
    let end = if is_early { ScriptEnd::Close } else { end };
    let script = Script {
        is_early,
        is_late: false,
        parts,
        end,
    };
    Drawn {
        script,
        reference: None,
        may,
    }
}

fn keep_first(lines: &mut Vec<&'static str>, name: &str) {
    let mut is_first = true;
    lines.retain(|line| !line.starts_with(name) || std::mem::replace(&mut is_first, false));
}

fn with_length(content: &[u8], len: usize) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {len}\r\n\r\n").into_bytes();
    bytes.extend(content);
    bytes
}

fn chunks(draw: &mut Draw, content: &[u8], framing: Framing) -> Vec<u8> {
    let mut bytes = Vec::new();
    let size_max = draw.pick(&[7, 100, 1000, 4096, 70_000, 300_000]);
    let extension = draw.pick(&["", "", "", ";a=b", " "]);
    for chunk in content.chunks(size_max) {
        bytes.extend(format!("{:x}{extension}\r\n", chunk.len()).bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(
        match framing {
            Framing::CutChunks => "",
            Framing::BadChunks => "x\r\n",
            Framing::ExtraChunks => "0\r\n\r\nmore",
            _ => draw.pick(&[
                "0\r\n\r\n",
                "0\r\n\r\n",
                "0\r\nT: value\r\n\r\n",
                "000;x\r\n\r\n",
            ]),
        }
        .as_bytes(),
    );
    bytes
}
