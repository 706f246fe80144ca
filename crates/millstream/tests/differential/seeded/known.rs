//! Differences between nginx and Millstream that COMPLIANCE.md explains, as far as random requests meet them.

use crate::server::Program;
use crate::trial::with_column;
use std::fmt::Write;

/// What hides one: it makes both texts equal where they differ by it, and by nothing else.
pub(crate) struct Known {
    pub(crate) id: &'static str,
    pub(crate) hide: fn(nginx: &mut String, millstream: &mut String),
}

/// Those that any request may meet.
pub(crate) const EVERYWHERE: &[&str] = &[
    "no-100-when-content-is-here",
    "too-large-chunks",
    "reset-of-a-cut-answer",
    "blanks-in-proxied-targets",
    "bytes-read-ahead",
    "chunks-in-memory",
    "log-of-unbuffered-content",
    "length-of-chunks",
    "status-of-a-range-in-logs",
    "connection-after-a-412",
    "asked-to-close",
];

/// Makes equal what two runs of one server could differ in, and the length of the server's name.
pub(crate) fn level(nginx: &mut String, other: &mut String, program: Program) {
    let is_named = program == Program::Millstream;
    for text in [&mut *nginx, other] {
        *text = number_of_file(text);
        // The number of chunks, and so of bytes, depends on the moments in which content came.
        if text.contains("\nTransfer-Encoding: chunked\n")
            || text.contains("\nContent-Encoding: gzip\n")
        {
            *text = with_column(text, 2, |_| String::from("some"));
        }
        if text.contains("\n  Transfer-Encoding: chunked\n") {
            *text = with_any(text, SENT);
        }
        // It depends on how fast the client reads.
        *text = without_lines(text, |line| {
            line.contains("an upstream response is buffered to a temporary file")
        });
    }
    if is_named && other.contains(PAGE) && nginx.contains(PAGE) {
        *other = with_column(other, 2, |sent| {
            sent.saturating_sub(NAME_LONGER).to_string()
        });
    }
    if is_named {
        level_length(nginx, other);
    }
}

/// The length of a content that an answer to HEAD does not show: of a page with the server's name, or of another one.
fn level_length(nginx: &mut String, other: &str) {
    const LINE: (&str, &str) = ("Content-Length: ", " and the name\n");
    let length = |text: &str| -> Option<usize> {
        let (_, rest) = text.split_once(LINE.0)?;
        rest.split_once(LINE.1)?.0.parse().ok()
    };
    if let (Some(ours), Some(theirs)) = (length(other), length(nginx))
        && theirs.saturating_sub(NAME_LONGER) == ours
    {
        let line = |length: usize| format!("{}{length}{}", LINE.0, LINE.1);
        *nginx = nginx.replace(&line(theirs), &line(ours));
    }
}

/// Bytes.
const NAME_LONGER: usize = "millstream".len() - "nginx".len();

/// What a page of the server's own has.
const PAGE: &str = "<center>SERVER</center>";

/// Replaces the number in the name of a temporary file.
fn number_of_file(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let found = ["OUT/body/", "OUT/proxy/"]
            .iter()
            .find_map(|name| line.find(name).map(|at| at + name.len()));
        match found {
            Some(at) => {
                let digits = line[at..]
                    .find(|byte: char| !(byte.is_ascii_digit() || byte == '/'))
                    .unwrap_or(0);
                let _ = writeln!(shown, "{}N{}", &line[..at], &line[at + digits..]);
            }
            None => {
                let _ = writeln!(shown, "{line}");
            }
        }
    }
    shown
}

fn without_lines(text: &str, is_left_out: impl Fn(&str) -> bool) -> String {
    let lines = text.lines().filter(|line| !is_left_out(line));
    lines.map(|line| format!("{line}\n")).collect()
}

pub(crate) const KNOWN: &[Known] = &[
    Known {
        id: "no-100-when-content-is-here",
        hide: |nginx, _| {
            const CONTINUE: &str = "HTTP/1.1 100 Continue\n\n";
            if let Some(rest) = nginx.strip_prefix(CONTINUE) {
                // nginx counts its bytes as content.
                *nginx = with_column(rest, 2, |sent| {
                    sent.saturating_sub("HTTP/1.1 100 Continue\r\n\r\n".len())
                        .to_string()
                });
            }
        },
    },
    Known {
        id: "too-large-chunks",
        hide: |nginx, _| {
            const TEXT: &str = "client intended to send too large chunked body";
            if let Some(at) = nginx.find(&format!("{TEXT}: ")) {
                let end = nginx[at..].find(" bytes").unwrap();
                nginx.replace_range(at + TEXT.len()..at + end + " bytes".len(), "");
            }
        },
    },
    Known {
        id: "reset-of-a-cut-answer",
        hide: |_, millstream| {
            if millstream.contains(CUT) {
                *millstream = millstream.replacen("\n(Reset)\n", "\n(Closed)\n", 1);
            }
        },
    },
    Known {
        id: "content-before-a-fault",
        hide: |nginx, millstream| {
            if millstream.contains(CUT) && is_cut(nginx) {
                for text in [&mut *nginx, millstream] {
                    *text = without_content(text);
                }
                // nginx may not even have sent the head.
                if nginx.starts_with('(') {
                    *millstream =
                        millstream[millstream.find("\n(").map_or(0, |at| at + 1)..].to_owned();
                }
            }
        },
    },
    Known {
        id: "charset-of-a-redirecting-answer",
        hide: |nginx, millstream| {
            if let Some(at) = nginx.find("\nContent-Type: text/html; charset=") {
                let end = at + 1 + nginx[at + 1..].find('\n').unwrap();
                if millstream.contains("\nContent-Type: text/html\n") {
                    nginx.replace_range(at..end, "\nContent-Type: text/html");
                }
            }
        },
    },
    Known {
        id: "connection-after-a-412",
        hide: |_, millstream| {
            if millstream.starts_with("HTTP/1.1 412 ") {
                *millstream = millstream.replacen("\n(Open)\n", "\n(Closed)\n", 1);
            }
        },
    },
    Known {
        id: "asked-to-close",
        hide: |nginx, millstream| {
            // Which connection is taken depends on what earlier requests have left.
            for text in [nginx, millstream] {
                *text = without_lines(text, |line| line.contains(" was asked (request "));
            }
        },
    },
    Known {
        id: "status-of-a-range-in-logs",
        hide: |nginx, millstream| {
            for status in ["206", "304"] {
                let line = format!("\nlog |{status}|");
                if millstream.contains(&line) {
                    *nginx = nginx.replacen("\nlog |200|", &line, 1);
                }
            }
        },
    },
    Known {
        id: "blanks-in-proxied-targets",
        hide: |nginx, millstream| {
            if nginx.contains("/a b/s") && millstream.contains("/a%20b/s") {
                nginx.clone_from(millstream);
            }
        },
    },
    Known {
        id: "bytes-read-ahead",
        hide: |nginx, millstream| {
            // The rest of an answer whose content is not wanted.
            if column(nginx, LENGTH).split(", ").last() == Some("0") {
                for text in [nginx, millstream] {
                    *text = with_any(&with_any(text, LENGTH), RECEIVED);
                }
            }
        },
    },
    Known {
        id: "chunks-in-memory",
        hide: |nginx, millstream| {
            for text in [nginx, millstream] {
                *text = without_lines(text, |line| {
                    line.contains("a client request body is buffered to a temporary file")
                });
            }
        },
    },
    Known {
        id: "malformed-answers",
        hide: |nginx, millstream| {
            if millstream.contains("|502|") || millstream.contains("|200|") {
                nginx.clone_from(millstream);
            }
        },
    },
    Known {
        id: "interim-answers",
        hide: |nginx, millstream| nginx.clone_from(millstream),
    },
    Known {
        id: "empty-phrase",
        hide: |nginx, millstream| {
            for text in [nginx, millstream] {
                let end = text.find('\n').unwrap_or(0);
                let line = text[..end].split(' ').take(2).collect::<Vec<_>>().join(" ");
                text.replace_range(..end, &line);
            }
        },
    },
    Known {
        id: "length-in-204",
        hide: |nginx, _| without_line(nginx, "Content-Length: 0"),
    },
    Known {
        id: "no-length-in-304",
        hide: |nginx, _| {
            without_line(nginx, "Content-Length: 0");
            without_line(nginx, "Content-Length: 0 and the name");
        },
    },
    Known {
        id: "log-of-unbuffered-content",
        hide: |nginx, _| {
            *nginx = nginx.replace(
                "while sending to client, client",
                "while reading upstream, client",
            );
            for text in ["final chunk", "\"Content-Length\" header"] {
                let line = |step: &str| format!("{text} while reading {step}");
                *nginx = nginx.replace(&line("response header from upstream"), &line("upstream"));
            }
        },
    },
    Known {
        id: "length-of-chunks",
        hide: |nginx, millstream| {
            let is_length = |line: &str| line.starts_with("  Content-Length: ");
            let is_chunks =
                |line: &str| line == "  Transfer-Encoding: chunked" || line == "(last chunk)";
            if nginx.lines().any(is_length) && millstream.lines().any(is_chunks) {
                *nginx = without_lines(&with_any(nginx, SENT), is_length);
                *millstream = without_lines(&with_any(millstream, SENT), is_chunks);
            }
        },
    },
    Known {
        id: "one-etag",
        hide: |nginx, millstream| {
            for text in [nginx, millstream] {
                while text.contains("ETag: ") {
                    let start = text.find("ETag: ").unwrap();
                    let len = text[start..].find('\n').unwrap();
                    text.replace_range(start..=start + len, "");
                }
            }
        },
    },
];

fn without_line(text: &mut String, line: &str) {
    *text = text.replacen(&format!("{line}\n"), "", 1);
}

/// What is shown of an answer that the end of the connection cuts, or ends.
const CUT: &str = "\n(to the end of the connection)\n";

/// `$upstream_response_length`.
const LENGTH: usize = 5;

/// `$upstream_bytes_sent`.
const SENT: usize = 6;

/// `$upstream_bytes_received`.
const RECEIVED: usize = 7;

fn column(text: &str, column: usize) -> &str {
    let mut lines = text.lines().filter(|line| line.starts_with("log |"));
    lines
        .next()
        .and_then(|line| line.split('|').nth(column))
        .unwrap_or_default()
}

/// An answer that is cut, or none at all.
fn is_cut(text: &str) -> bool {
    text.contains(CUT) || text.starts_with('(')
}

/// Leaves out the content, how it ended, and its length in the log.
fn without_content(text: &str) -> String {
    let head = text.find("\n\n").filter(|_| !text.starts_with('('));
    let end = text.find(CUT).map_or(0, |at| at + CUT.len());
    let text = head.map_or_else(
        || text.to_owned(),
        |head| format!("{}\n{}", &text[..head], &text[end..]),
    );
    let text = without_lines(&text, |line| line.starts_with("Content-Length: "));
    // nginx may read on behind what is wrong, and says at which moment it saw that.
    let text = text.replace(
        "response while reading response header from",
        "response while reading",
    );
    let text = text.replace(
        "while reading response header from upstream, client",
        "while reading upstream, client",
    );
    [2, LENGTH, RECEIVED]
        .iter()
        .fold(text, |text, &index| with_any(&text, index))
}

/// The same with `some` in this column.
fn with_any(text: &str, index: usize) -> String {
    let lines = text.lines().map(|line| {
        let mut columns: Vec<&str> = line.split('|').collect();
        if line.starts_with("log |") {
            columns[index] = "some";
        }
        columns.join("|") + "\n"
    });
    lines.collect()
}
