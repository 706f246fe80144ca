//! Readers of HTTP/1 that forgive what RFC 9112 forbids, each in its own way, as servers and clients in use do.
//!
//! Bytes that all of them divide in the same places cannot be read by one as two messages and by another as one.

/// A line's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    CrLf,
    /// LF with or without CR.
    Lf,
    /// CR alone too, and a line of blanks is an empty one.
    Any,
}

/// What is taken for the name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Exact,
    /// Without the blanks and control bytes around it.
    Trimmed,
    /// With `-` for what is no letter or digit, as CGI programs see them, and for look-alikes of other alphabets their
    /// letters: `Content_Length` too.
    Alike,
}

/// Which values of `Transfer-Encoding` mean chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codings {
    Chunked,
    /// Those that have the word somewhere, in any case.
    Containing,
    Any,
}

/// One way of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reader {
    line_end: LineEnd,
    names: Names,
    codings: Codings,
    /// Numbers are digits and nothing else.
    exact_numbers: bool,
    /// Of several lengths the last one counts.
    last_length: bool,
    /// A length counts more than chunks.
    prefers_length: bool,
    /// A line that begins with a blank belongs to the one before it; else it is a field.
    joins_folds: bool,
    /// Two bytes behind a chunk are passed over, whatever they are.
    skips_two: bool,
    /// A length counts in answers that have no content.
    fills_bare: bool,
}

/// Where messages begin, and whether the last one is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) starts: Vec<usize>,
    pub(crate) is_whole: bool,
}

/// How a message's content ends.
enum Body {
    Length(usize),
    Chunks,
    UntilEnd,
}

impl Reader {
    /// As RFC 9112 has it.
    pub(crate) const STRICT: Self = Self {
        line_end: LineEnd::CrLf,
        names: Names::Exact,
        codings: Codings::Chunked,
        exact_numbers: true,
        last_length: false,
        prefers_length: false,
        joins_folds: true,
        skips_two: false,
        fills_bare: false,
    };

    /// Readers that differ from each other in all these ways. Of those that cannot hide each other's effect not all
    /// combinations are there.
    pub(crate) fn all() -> Vec<Self> {
        let mut readers = Vec::new();
        for line_end in [LineEnd::CrLf, LineEnd::Lf, LineEnd::Any] {
            for names in [Names::Exact, Names::Trimmed, Names::Alike] {
                for codings in [Codings::Chunked, Codings::Containing, Codings::Any] {
                    for bits in 0..4 {
                        readers.push(Self {
                            line_end,
                            names,
                            codings,
                            exact_numbers: false,
                            last_length: bits & 1 != 0,
                            prefers_length: bits & 2 != 0,
                            joins_folds: readers.len() % 3 == 0,
                            skips_two: readers.len() % 5 == 0,
                            fills_bare: readers.len() % 7 == 0,
                        });
                    }
                }
            }
        }
        readers
    }

    /// Bytes of the request at the beginning, if it is whole.
    pub(crate) fn request_len(&self, bytes: &[u8]) -> Option<usize> {
        self.message_end(bytes, 0, |_, _| None)
    }

    /// Divides requests.
    pub(crate) fn requests(&self, bytes: &[u8]) -> Division {
        self.divide(bytes, |_, _| None)
    }

    /// Divides answers to requests with these methods.
    pub(crate) fn answers(&self, bytes: &[u8], methods: &[&str]) -> Division {
        let mut methods = methods.iter();
        self.divide(bytes, move |status_line, has_framing| {
            let status = status_line.split(' ').nth(1).unwrap_or_default();
            let method = if status.starts_with('1') && status != "101" {
                None
            } else {
                methods.next()
            };
            let is_bare = status.starts_with('1') || matches!(status, "204" | "304");
            match method {
                Some(&"HEAD") => Some(Body::Length(0)),
                _ if status == "101" => Some(Body::UntilEnd),
                _ if is_bare && !(self.fills_bare && has_framing) => Some(Body::Length(0)),
                _ if !has_framing => Some(Body::UntilEnd),
                _ => None,
            }
        })
    }

    /// `of_line` knows, from the first line and whether fields frame the content, what ends it in spite of them.
    fn divide(
        &self,
        bytes: &[u8],
        mut of_line: impl FnMut(&str, bool) -> Option<Body>,
    ) -> Division {
        let mut starts = Vec::new();
        let mut at = self.skip_empty_lines(bytes, 0);
        while at < bytes.len() {
            starts.push(at);
            let Some(end) = self.message_end(bytes, at, &mut of_line) else {
                let is_whole = false;
                return Division { starts, is_whole };
            };
            at = self.skip_empty_lines(bytes, end);
        }
        let is_whole = true;
        Division { starts, is_whole }
    }

    fn message_end(
        &self,
        bytes: &[u8],
        at: usize,
        of_line: impl FnOnce(&str, bool) -> Option<Body>,
    ) -> Option<usize> {
        let (lines, start) = self.head(bytes, at)?;
        let framed = self.framing(&lines[1..]);
        let body = of_line(&String::from_utf8_lossy(&lines[0]), framed.is_some());
        match body.or(framed) {
            None => Some(start),
            Some(Body::Length(len)) => start.checked_add(len).filter(|end| *end <= bytes.len()),
            Some(Body::Chunks) => self.skip_chunks(bytes, start),
            Some(Body::UntilEnd) => Some(bytes.len()),
        }
    }

    fn skip_empty_lines(&self, bytes: &[u8], mut at: usize) -> usize {
        while let Some((line, next)) = self.line(bytes, at)
            && line.is_empty()
        {
            at = next;
        }
        at
    }

    /// The line at `at`, and where the next one begins.
    fn line<'b>(&self, bytes: &'b [u8], at: usize) -> Option<(&'b [u8], usize)> {
        let rest = bytes.get(at..)?;
        let lf = rest.iter().position(|byte| *byte == b'\n');
        let (line, next) = match self.line_end {
            LineEnd::CrLf => {
                let len = rest.windows(2).position(|two| two == b"\r\n")?;
                (&rest[..len], len + 2)
            }
            LineEnd::Lf => {
                let len = lf?;
                (
                    rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len]),
                    len + 1,
                )
            }
            LineEnd::Any => {
                let len = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
                let is_two = rest[len..].starts_with(b"\r\n");
                (rest[..len].trim_ascii(), len + 1 + usize::from(is_two))
            }
        };
        Some((line, at + next))
    }

    /// The lines of a head, and where its content begins.
    fn head(&self, bytes: &[u8], mut at: usize) -> Option<(Vec<Vec<u8>>, usize)> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        loop {
            let is_fold = matches!(bytes.get(at), Some(b' ' | b'\t'));
            let (line, next) = self.line(bytes, at)?;
            at = next;
            if line.is_empty() && !lines.is_empty() {
                return Some((lines, at));
            }
            match lines.last_mut() {
                Some(before) if is_fold && self.joins_folds => before.extend_from_slice(line),
                _ => lines.push(line.to_vec()),
            }
        }
    }

    /// What the fields say of the content.
    fn framing(&self, lines: &[Vec<u8>]) -> Option<Body> {
        let (mut length, mut is_chunked) = (None, false);
        for line in lines {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let (name, value) = (self.name(&line[..colon]), line[colon + 1..].trim_ascii());
            if name == self.name(b"content-length") && (length.is_none() || self.last_length) {
                length = self.number(value, 10).or(length);
            } else if name == self.name(b"transfer-encoding") {
                is_chunked |= self.means_chunks(value);
            }
        }
        match length {
            Some(length) if self.prefers_length || !is_chunked => Some(Body::Length(length)),
            _ => is_chunked.then_some(Body::Chunks),
        }
    }

    fn name(&self, written: &[u8]) -> String {
        let name = String::from_utf8_lossy(written).to_lowercase();
        match self.names {
            Names::Exact => name,
            Names::Trimmed => name
                .trim_matches(|byte: char| byte <= ' ' || byte == '\x7f')
                .to_owned(),
            Names::Alike => name
                .replace('\u{17f}', "s")
                .replace('\u{212a}', "k")
                .replace(|byte: char| !byte.is_ascii_alphanumeric(), "-"),
        }
    }

    fn means_chunks(&self, value: &[u8]) -> bool {
        let value = value.to_ascii_lowercase();
        match self.codings {
            Codings::Chunked => value == b"chunked",
            Codings::Containing => value.windows(7).any(|seven| seven == b"chunked"),
            Codings::Any => true,
        }
    }

    fn skip_chunks(&self, bytes: &[u8], mut at: usize) -> Option<usize> {
        loop {
            let (line, next) = self.line(bytes, at)?;
            at = next;
            let size = self.number(line, 16)?;
            if size == 0 {
                break;
            }
            at = at.checked_add(size).filter(|end| *end <= bytes.len())?;
            at = match self.line(bytes, at) {
                Some((b"", next)) if !self.skips_two => next,
                _ if self.skips_two => at + 2,
                _ => at,
            };
        }
        loop {
            let (line, next) = self.line(bytes, at)?;
            at = next;
            if line.is_empty() {
                return Some(at);
            }
        }
    }

    /// Else as C's `strtoul`: blanks, a sign and `0x` in front are passed over, as is what follows the digits.
    fn number(&self, text: &[u8], radix: u32) -> Option<usize> {
        let text = String::from_utf8_lossy(text).to_ascii_lowercase();
        if self.exact_numbers {
            let digits = text.split(';').next().unwrap_or_default();
            return usize::from_str_radix(digits, radix)
                .ok()
                .filter(|_| !digits.starts_with('+'));
        }
        let text = text.trim_start_matches(|byte: char| byte <= ' ' || "+-\"'".contains(byte));
        let text = text
            .strip_prefix("0x")
            .filter(|_| radix == 16)
            .unwrap_or(text);
        let digits = text
            .find(|byte: char| !byte.is_digit(radix))
            .unwrap_or(text.len());
        Some(usize::from_str_radix(&text[..digits], radix).unwrap_or(0))
    }
}

/// Divides requests; an error if not all readers divide them equally.
pub(crate) fn agreed_requests(readers: &[Reader], bytes: &[u8]) -> Result<Division, String> {
    agreed(readers, bytes, |reader| reader.requests(bytes))
}

/// Divides answers in the same way. No client takes a name for another one.
pub(crate) fn agreed_answers(
    readers: &[Reader],
    bytes: &[u8],
    methods: &[&str],
) -> Result<Division, String> {
    let readers: Vec<Reader> = readers
        .iter()
        .copied()
        .filter(|reader| reader.names != Names::Alike)
        .collect();
    agreed(&readers, bytes, |reader| reader.answers(bytes, methods))
}

fn agreed(
    readers: &[Reader],
    bytes: &[u8],
    divide: impl Fn(&Reader) -> Division,
) -> Result<Division, String> {
    let strict = divide(&Reader::STRICT);
    for reader in readers {
        let found = divide(reader);
        if found != strict {
            let bytes = bytes.escape_ascii();
            return Err(format!("{reader:?}: {found:?}, not {strict:?}: {bytes}"));
        }
    }
    Ok(strict)
}

#[test]
fn readers_differ_where_a_message_can_be_read_in_two_ways() {
    let check = |bytes: &[u8], is_ambiguous: bool| {
        let strict = Reader::STRICT.requests(bytes);
        let differs = |reader: &Reader| reader.requests(bytes) != strict;
        let found = Reader::all().iter().any(differs);
        assert_eq!(found, is_ambiguous, "{}", bytes.escape_ascii());
    };
    check(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false);
    check(
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nxGET / HTTP/1.1\r\n\r\n",
        false,
    );
    check(
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        false,
    );
    for field in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: +1",
        "Content-Length : 4",
        "Content_Length: 4",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding:\r\n chunked",
        "X: y\nContent-Length: 3",
        "X: y\rContent-Length: 3",
    ] {
        let bytes = format!("POST / HTTP/1.1\r\n{field}\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n");
        check(bytes.as_bytes(), true);
    }
}
