//! Requests, parsed as far as necessary: where one ends, and whether its connection persists.

/// The relevant properties of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Bytes of the head with its empty line.
    pub(super) head_bytes: usize,
    /// Bytes of content that follow.
    pub(super) content_bytes: u64,
    /// Its method is HEAD.
    pub(super) is_head: bool,
    pub(super) connection: Connection,
}

/// The persistence of the connection (RFC 9112 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    /// HTTP/1.1 persists without a field.
    Persistent,
    /// HTTP/1.0 persists on request, and the answer says so.
    KeepAlive,
    Close,
}

/// The result of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scanned {
    Request(Request),
    More,
    /// No head ends within the maximum length.
    TooLong,
}

/// Reads heads; keeps the last one, because most heads of a load are equal.
#[derive(Debug, Default)]
pub(super) struct Reader {
    last: Vec<u8>,
    known: Option<Request>,
}

impl Reader {
    /// Looks for a request at the beginning of `bytes`.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Scanned {
        if let Some(known) = self.known
            && bytes.starts_with(&self.last)
        {
            return Scanned::Request(known);
        }
        let Some(head_bytes) = end_of_head(bytes) else {
            return if bytes.len() >= HEAD_BYTES_MAX {
                Scanned::TooLong
            } else {
                Scanned::More
            };
        };
        let head = bytes.get(..head_bytes).unwrap_or_default();
        let request = examine(head);
        self.last.clear();
        self.last.extend_from_slice(head);
        self.known = Some(request);
        Scanned::Request(request)
    }
}

/// Where the empty line ends.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut line_start = 0;
    for (index, byte) in bytes.iter().enumerate() {
        if *byte != b'\n' {
            continue;
        }
        let line = bytes.get(line_start..index).unwrap_or_default();
        // Empty lines before a request do not end it (RFC 9112 2.2).
        if matches!(line, b"" | b"\r") && line_start > LONGEST_LEADING {
            return Some(index + 1);
        }
        line_start = index + 1;
    }
    None
}

fn examine(head: &[u8]) -> Request {
    let mut lines = head
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .skip_while(|line| line.is_empty());
    let request_line = lines.next().unwrap_or_default();
    let mut content_bytes = 0;
    let mut asked = None;
    let mut is_chunked = false;
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            let text = str::from_utf8(value).unwrap_or_default();
            content_bytes = text.parse().unwrap_or(0);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            is_chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            asked = asked.or(option(value));
        }
    }
    let is_new = request_line.ends_with(b"HTTP/1.1");
    let connection = match asked {
        // The end of such content is not searched for: no request can follow.
        _ if is_chunked => Connection::Close,
        Some(Connection::Close) => Connection::Close,
        _ if is_new => Connection::Persistent,
        Some(_) => Connection::KeepAlive,
        None => Connection::Close,
    };
    Request {
        head_bytes: head.len(),
        content_bytes,
        is_head: request_line.starts_with(b"HEAD "),
        connection,
    }
}

/// The option in `Connection`, if it is one of the two known ones.
fn option(value: &[u8]) -> Option<Connection> {
    let mut words = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    words.find_map(|word| {
        if word.eq_ignore_ascii_case(b"close") {
            Some(Connection::Close)
        } else if word.eq_ignore_ascii_case(b"keep-alive") {
            Some(Connection::KeepAlive)
        } else {
            None
        }
    })
}

/// The maximum of bytes of a head: the minimum that engines buffer.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1024;

/// A line that starts at or before this offset can't follow a request line, since the shortest is `GET / HTTP/1.0`.
const LONGEST_LEADING: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, content_bytes: u64, connection: Connection) {
        let mut reader = Reader::default();
        let expected = Request {
            head_bytes: text.len(),
            content_bytes,
            is_head: text.starts_with("HEAD"),
            connection,
        };
        let more = format!("{text}GET / HTTP/1.0\r\n\r\n");
        // Parsed the first time, recalled the second.
        for _ in 0..2 {
            assert_eq!(
                reader.scan(more.as_bytes()),
                Scanned::Request(expected),
                "{text:?}"
            );
        }
        assert_eq!(
            Reader::default().scan(&text.as_bytes()[..text.len() - 1]),
            Scanned::More
        );
    }

    #[test]
    fn a_request_ends_with_its_empty_line() {
        check(
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            0,
            Connection::Persistent,
        );
        check("HEAD / HTTP/1.1\nHost: a\n\n", 0, Connection::Persistent);
        check("\r\nGET / HTTP/1.1\r\n\r\n", 0, Connection::Persistent);
        check(
            "POST / HTTP/1.1\r\ncontent-LENGTH: 12\r\n\r\n",
            12,
            Connection::Persistent,
        );
    }

    #[test]
    fn a_connection_goes_on_as_its_version_and_its_field_say() {
        check("GET / HTTP/1.0\r\n\r\n", 0, Connection::Close);
        check(
            "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
            0,
            Connection::KeepAlive,
        );
        check(
            "GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n",
            0,
            Connection::Persistent,
        );
        check(
            "GET / HTTP/1.1\r\nConnection: TE, close\r\n\r\n",
            0,
            Connection::Close,
        );
        check(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            0,
            Connection::Close,
        );
    }

    #[test]
    fn another_head_after_a_remembered_one_is_read() {
        let mut reader = Reader::default();
        let connection = |scanned| match scanned {
            Scanned::Request(request) => Some(request.connection),
            _ => None,
        };
        let first = reader.scan(b"GET / HTTP/1.1\r\n\r\n");
        let second = reader.scan(b"GET / HTTP/1.0\r\n\r\n");
        assert_eq!(connection(first), Some(Connection::Persistent));
        assert_eq!(connection(second), Some(Connection::Close));
    }

    #[test]
    fn a_head_without_end_is_too_long() {
        let mut reader = Reader::default();
        assert_eq!(reader.scan(&vec![b'a'; HEAD_BYTES_MAX - 1]), Scanned::More);
        assert_eq!(reader.scan(&vec![b'a'; HEAD_BYTES_MAX]), Scanned::TooLong);
    }
}
