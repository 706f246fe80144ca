//! Differences between nginx and Millstream that COMPLIANCE.md explains, as far as random requests meet them.

/// What two runs of one server could differ in.
pub(crate) mod level;

/// What is shown of a request.
mod text;

use text::{
    CONTINUE, CUT, LENGTH, RECEIVED, SENT, column, content_type, is_cut, sent, with_any,
    without_content, without_in_head, without_length_of_100, without_lines, without_reason,
};

/// What hides one: it makes both texts equal where they differ by it, and by nothing else.
pub(crate) struct Known {
    pub(crate) id: &'static str,
    pub(crate) hide: fn(nginx: &mut String, millstream: &mut String),
}

/// Those that any request may meet.
pub(crate) const EVERYWHERE: &[&str] = &[
    "no-100-when-content-is-here",
    "length-with-100",
    "too-large-chunks",
    "reset-of-a-cut-answer",
    "blanks-in-proxied-targets",
    "bytes-read-ahead",
    "chunks-in-memory",
    "log-of-unbuffered-content",
    "length-of-chunks",
    "status-of-a-range-in-logs",
    "connection-after-a-412",
    "log-of-a-client-that-left",
    "asked-to-close",
];

pub(crate) const KNOWN: &[Known] = &[
    Known {
        id: "no-100-when-content-is-here",
        hide: |nginx, millstream| {
            if !millstream.starts_with(CONTINUE)
                && let Some(rest) = nginx.strip_prefix(CONTINUE)
            {
                *nginx = without_length_of_100(rest);
            }
        },
    },
    Known {
        id: "length-with-100",
        hide: |nginx, millstream| {
            if let Some(rest) = nginx.strip_prefix(CONTINUE)
                && let Some(found) = millstream.strip_prefix(CONTINUE)
            {
                *nginx = without_length_of_100(rest);
                *millstream = found.to_owned();
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
            let has_left = millstream.starts_with("(Left");
            if (millstream.contains(CUT) || has_left) && is_cut(nginx) {
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
            const UNMAPPED: &str = "[error] no \"charset_map\" between the charsets ";
            *nginx = without_lines(nginx, |line| {
                let is_of_page = !line.contains(" while ");
                line.starts_with(UNMAPPED)
                    && (is_of_page || line.contains(" while sending response to client"))
            });
            // Another status than the server's: the answer is not the server's.
            let is_replaced = column(millstream, 1) != column(millstream, 4);
            if let (Some(theirs), Some(ours)) = (content_type(nginx), content_type(millstream))
                && is_replaced
                && theirs == format!("{ours}; charset=utf-8")
            {
                *nginx = nginx.replacen(&theirs, &ours, 1);
            }
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
        hide: |nginx, millstream| {
            if millstream.starts_with("HTTP/1.1 412 ") && nginx.contains("\n(Closed)\n") {
                *millstream = millstream.replacen("\n(Open)\n", "\n(Closed)\n", 1);
            }
            // Another request on the connection is answered.
            let first = nginx.find("\n(Closed)\n").unwrap_or(0);
            let line = nginx.lines().find(|line| line.starts_with("log |"));
            if nginx.starts_with("HTTP/1.1 412 ")
                && millstream.starts_with(&nginx[..first])
                && millstream.matches("\nHTTP/1.1 ").count() == 1
                && line.is_some_and(|line| millstream.contains(line))
            {
                nginx.clone_from(millstream);
            }
        },
    },
    Known {
        id: "connection-after-unread-content",
        hide: |nginx, millstream| {
            if nginx.contains("\nConnection: keep-alive\n") && nginx.contains("\n(Closed)\n") {
                *millstream = millstream.replacen("\n(Open)\n", "\n(Closed)\n", 1);
            }
        },
    },
    Known {
        id: "log-of-a-client-that-left",
        hide: |nginx, millstream| {
            if !millstream.contains("(Left") {
                return;
            }
            for text in [nginx, millstream] {
                let is_of_system =
                    |line: &str| CALLS_TO_CLIENT.iter().any(|call| line.starts_with(call));
                let left = without_lines(text, is_of_system);
                let left = left.replace(" (104: Connection reset by peer) while", " while");
                // What was sent before depends on the moment.
                *text = with_any(&left, 2);
            }
        },
    },
    Known {
        id: "log-of-a-client-that-left",
        hide: |nginx, millstream| {
            if !millstream.contains("(LeftWithinAnswer)\n") {
                return;
            }
            // nginx may have read more before it noticed, or notice nothing.
            for text in [nginx, millstream] {
                let is_noticed = |line: &str| {
                    line.starts_with("[info] epoll_wait() reported that client prematurely closed")
                        || line.starts_with("[warn] upstream sent ")
                };
                let left = without_lines(text, is_noticed);
                *text = with_any(&with_any(&left, LENGTH), RECEIVED);
            }
        },
    },
    Known {
        id: "asked-to-close",
        hide: |nginx, millstream| {
            const KEPT: &str = "(request 2 of its connection)";
            const NEW: &str = "(request 1 of its connection)";
            let closes = |text: &str| {
                let mut asked = text.split(" was asked ").skip(1);
                asked.next().is_some_and(|first| {
                    first.contains("\n  Connection: close\n")
                        || first
                            .lines()
                            .nth(1)
                            .is_some_and(|line| line.ends_with(" HTTP/1.0"))
                })
            };
            if closes(millstream) && millstream.matches(NEW).count() == 2 {
                *nginx = nginx.replacen(KEPT, NEW, 1);
            }
        },
    },
    Known {
        id: "status-of-a-range-in-logs",
        hide: |nginx, millstream| {
            let is_log = |line: &&str| line.starts_with("log |");
            let mut found = millstream.lines().filter(is_log);
            let lines = nginx.lines().map(|line| {
                let logged = if is_log(&line) { found.next() } else { None };
                let sent = ["log |206|", "log |304|"].into_iter();
                let mut sent =
                    sent.filter(|sent| logged.is_some_and(|line| line.starts_with(sent)));
                match (line.strip_prefix("log |200|"), sent.next()) {
                    (Some(rest), Some(sent)) => format!("{sent}{rest}\n"),
                    _ => format!("{line}\n"),
                }
            });
            *nginx = lines.collect();
        },
    },
    Known {
        id: "blanks-in-proxied-targets",
        hide: |nginx, millstream| {
            const BLANK: &str = "/a b/s";
            let is_asked = |line: &&str| line.contains(BLANK) && line.contains(" HTTP/1.");
            let is_asked = |line: &&str| line.starts_with("  ") && is_asked(line);
            let asked = nginx.lines().filter(is_asked).count();
            let in_all = sent(nginx).map(|sent| sent + asked * "20".len());
            if nginx.contains(BLANK) && sent(millstream) == in_all {
                let escaped = nginx.lines().map(|line| {
                    if line.starts_with("  ") || line.starts_with('[') {
                        line.replace(BLANK, "/a%20b/s") + "\n"
                    } else {
                        format!("{line}\n")
                    }
                });
                *nginx = with_any(&escaped.collect::<String>(), SENT);
                *millstream = with_any(millstream, SENT);
            }
        },
    },
    Known {
        id: "named-by-connection",
        hide: |nginx, millstream| {
            let is_named = |line: &str| line.starts_with("  X-Own: ");
            if millstream.lines().any(is_named) {
                return;
            }
            let named = nginx.lines().filter(|line| is_named(line));
            let len: usize = named
                .map(|line| line.trim_start().len() + "\r\n".len())
                .sum();
            if len > 0 && sent(nginx) == sent(millstream).map(|sent| sent + len) {
                *nginx = with_any(&without_lines(nginx, is_named), SENT);
                *millstream = with_any(millstream, SENT);
            }
        },
    },
    Known {
        id: "bytes-read-ahead",
        hide: |nginx, millstream| {
            // The rest of an answer whose content is not wanted or whose client has gone, or what follows its end.
            let has_surplus = nginx.contains("\n[warn] upstream sent more data than specified")
                || nginx.contains("\n[warn] upstream sent data after final chunk");
            let has_left = [&*nginx, &*millstream]
                .iter()
                .all(|text| text.starts_with("(Left)"));
            if has_surplus || has_left || column(nginx, LENGTH).split(", ").last() == Some("0") {
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
            // nginx got another malformed answer.
            for text in [nginx, millstream] {
                *text = without_reason(&with_any(&with_any(text, LENGTH), RECEIVED));
            }
        },
    },
    Known {
        id: "interim-answers",
        hide: |nginx, millstream| {
            // nginx got the final answer alone.
            for text in [nginx, millstream] {
                *text = with_any(text, RECEIVED);
            }
        },
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
        hide: |nginx, _| without_in_head(nginx, "Content-Length: 0"),
    },
    Known {
        id: "no-length-in-304",
        hide: |nginx, _| {
            without_in_head(nginx, "Content-Length: 0");
            without_in_head(nginx, "Content-Length: 0 and the name");
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
            let len = |text: &str| {
                let (_, rest) = text.split_once("\n  Content-Length: ")?;
                rest.lines().next()?.parse().ok()
            };
            let is_chunked = |text: &str| text.contains("\n  Transfer-Encoding: chunked\n");
            let is_long = |text: &str| len(text).is_some_and(|len: usize| len >= LONG_FOR_BUFFERS);
            let is_framing = |line: &str| {
                line.starts_with("  Content-Length: ")
                    || line == "  Transfer-Encoding: chunked"
                    || line == "(last chunk)"
            };
            if is_long(millstream) && is_chunked(nginx) || is_long(nginx) && is_chunked(millstream)
            {
                for text in [nginx, millstream] {
                    *text = without_lines(&with_any(text, SENT), is_framing);
                }
            }
        },
    },
    Known {
        id: "unknown-charset",
        hide: |nginx, millstream| {
            const UNKNOWN: &str = "[error] unknown charset \"";
            const UNMAPPED: &str = "[error] no \"charset_map\" between the charsets ";
            if nginx.contains(UNKNOWN) {
                *nginx = without_lines(nginx, |line| line.starts_with(UNKNOWN));
                *millstream = without_lines(millstream, |line| line.starts_with(UNMAPPED));
                // It names the character set as nginx does one that it knows.
                let (theirs, ours) = (content_type(nginx), content_type(millstream));
                let media_type = |kind: &str| kind.split(';').next().map(str::to_owned);
                if let (Some(theirs), Some(ours)) = (theirs, ours)
                    && media_type(&theirs) == media_type(&ours)
                {
                    *millstream = millstream.replacen(&ours, &theirs, 1);
                }
            }
        },
    },
    Known {
        id: "several-content-types",
        hide: |nginx, millstream| {
            if let (Some(theirs), Some(ours)) = (content_type(nginx), content_type(millstream))
                && let Some((kind, _)) = theirs.split_once("; charset=")
                && (ours == kind || ours == format!("{kind}; charset=utf-8"))
            {
                *nginx = nginx.replacen(&theirs, &ours, 1);
            }
            // nginx compares the character set of the first type.
            const UNMAPPED: &str = "[error] no \"charset_map\" between";
            if !millstream.contains(UNMAPPED) {
                *nginx = without_lines(nginx, |line| line.starts_with(UNMAPPED));
            }
        },
    },
    Known {
        id: "one-expires",
        hide: |nginx, millstream| {
            const LINE: &str = "\nExpires: DATE\n";
            if nginx.contains(&LINE.repeat(2).replace("\n\n", "\n"))
                && millstream.matches("\nExpires: ").count() == 1
            {
                *nginx = nginx.replacen(LINE, "\n", 1);
            }
        },
    },
    Known {
        id: "one-accept-ranges",
        hide: |nginx, millstream| {
            const LINE: &str = "\nAccept-Ranges: ";
            if nginx.contains("<center>SERVER</center>") && !millstream.contains(LINE) {
                *nginx = without_lines(nginx, |line| line.starts_with(LINE.trim_start()));
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

/// What the system has said of a client that is gone.
const CALLS_TO_CLIENT: &[&str] = &[
    "[info] shutdown() failed (107: ",
    "[info] writev() failed (32: ",
    "[info] writev() failed (104: ",
    "[info] send() failed (32: ",
    "[info] send() failed (104: ",
    "[info] recv() failed (104: ",
    "[info] client closed the connection (Reset) while sending response to client",
];

/// Content whose chunks may not fit into 1 kB with the head.
const LONG_FOR_BUFFERS: usize = 600;
