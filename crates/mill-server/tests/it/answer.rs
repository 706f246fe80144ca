//! Answers as a client reads them (RFC 9112), with a parser that shares nothing with mill-http.

use std::fmt;
use std::io::Read;

/// One answer.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// From the status line to the empty line.
    pub(crate) head: String,
    /// Without framing.
    pub(crate) content: Vec<u8>,
    /// Field lines after the last chunk.
    pub(crate) trailers: Vec<String>,
}

/// The beginning and the end of the bytes, for messages.
pub(crate) fn shown(bytes: &[u8]) -> String {
    if bytes.len() <= 1000 {
        return bytes.escape_ascii().to_string();
    }
    let (begin, end) = (&bytes[..500], &bytes[bytes.len() - 500..]);
    format!(
        "{} … {} ({} bytes)",
        begin.escape_ascii(),
        end.escape_ascii(),
        bytes.len()
    )
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    /// More bytes were announced.
    Cut,
}

impl Answer {
    /// The value of a field that occurs once, if it occurs.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let mut values = self.head.split("\r\n").skip(1).filter_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim())
        });
        let value = values.next();
        assert_eq!(values.next(), None, "{name} occurs once in {}", self.head);
        value
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }

    pub(crate) fn keeps_alive(&self) -> bool {
        match self.field("Connection") {
            Some("keep-alive") => true,
            Some("close") => false,
            other => panic!("Connection is keep-alive or close, not {other:?}"),
        }
    }

    /// The head with the date's text taken out.
    pub(crate) fn head_without_date(&self) -> String {
        let lines = self.head.split("\r\n");
        let kept: Vec<&str> = lines.filter(|line| !line.starts_with("Date: ")).collect();
        assert_eq!(
            kept.len() + 1,
            self.head.split("\r\n").count(),
            "one Date in {}",
            self.head
        );
        kept.join("\r\n")
    }

    /// The content, decompressed from gzip.
    pub(crate) fn unzipped(&self) -> Vec<u8> {
        assert_eq!(
            self.field("Content-Encoding"),
            Some("gzip"),
            "{}",
            self.head
        );
        let mut plain = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(self.content.as_slice());
        decoder
            .read_to_end(&mut plain)
            .expect("the content is gzip");
        plain
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.content[..self.content.len().min(200)];
        write!(formatter, "{}{}", self.head, shown.escape_ascii())
    }
}

/// All answers in `bytes`, each to a GET; none may be truncated, and no bytes may be left over.
pub(crate) fn answers(bytes: &[u8]) -> Vec<Answer> {
    let mut rest = bytes;
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let (answer, ending) = next("GET", &mut rest);
        assert_eq!(ending, Ending::Whole, "cut: {}", shown(bytes));
        answers.push(answer);
    }
    answers
}

/// The only answer in `bytes`.
pub(crate) fn answer(bytes: &[u8]) -> Answer {
    answer_to("GET", bytes)
}

/// The only answer in `bytes`, to a request of this method.
pub(crate) fn answer_to(method: &str, bytes: &[u8]) -> Answer {
    let mut rest = bytes;
    let (answer, ending) = next(method, &mut rest);
    assert_eq!(ending, Ending::Whole, "cut: {}", shown(bytes));
    assert!(rest.is_empty(), "one answer, not {}", shown(bytes));
    answer
}

/// The first answer, which may be truncated.
pub(crate) fn first_answer(bytes: &[u8]) -> (Answer, Ending) {
    let mut rest = bytes;
    next("GET", &mut rest)
}

/// Takes the next answer off `rest`. One that ends with the connection takes everything.
pub(crate) fn next(method: &str, rest: &mut &[u8]) -> (Answer, Ending) {
    let end = rest.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("a head ends: {}", shown(rest))) + 4;
    let head = std::str::from_utf8(&rest[..end])
        .expect("a head is ASCII")
        .to_string();
    *rest = &rest[end..];
    check_lines(&head);
    let status_line = head.split("\r\n").next().unwrap_or_default();
    let mut words = status_line.splitn(3, ' ');
    assert_eq!(words.next(), Some("HTTP/1.1"), "{head}");
    let status = words.next().and_then(|word| word.parse().ok());
    let status: u16 = status.unwrap_or_else(|| panic!("a status in {head}"));
    let mut answer = Answer {
        status,
        head,
        content: Vec::new(),
        trailers: Vec::new(),
    };
    let ending = take_content(method, &mut answer, rest);
    (answer, ending)
}

fn take_content(method: &str, answer: &mut Answer, rest: &mut &[u8]) -> Ending {
    if method == "HEAD" || answer.status < 200 || matches!(answer.status, 204 | 304) {
        return Ending::Whole;
    }
    if let Some(coding) = answer.field("Transfer-Encoding") {
        assert_eq!(coding, "chunked");
        assert_eq!(answer.field("Content-Length"), None);
        return take_chunks(answer, rest);
    }
    let Some(length) = answer.field("Content-Length") else {
        answer.content = std::mem::take(rest).to_vec();
        return Ending::Whole;
    };
    let length: usize = length.parse().expect("Content-Length is a number");
    let (content, left) = rest.split_at(length.min(rest.len()));
    answer.content = content.to_vec();
    *rest = left;
    if content.len() < length {
        Ending::Cut
    } else {
        Ending::Whole
    }
}

fn take_chunks(answer: &mut Answer, rest: &mut &[u8]) -> Ending {
    loop {
        let Some(size) = take_line(rest) else {
            return Ending::Cut;
        };
        let size = usize::from_str_radix(&size, 16).expect("a chunk's size is hexadecimal");
        if size == 0 {
            break;
        }
        if rest.len() < size + 2 {
            answer
                .content
                .extend_from_slice(&rest[..size.min(rest.len())]);
            *rest = &[];
            return Ending::Cut;
        }
        answer.content.extend_from_slice(&rest[..size]);
        assert_eq!(&rest[size..size + 2], b"\r\n", "a chunk ends");
        *rest = &rest[size + 2..];
    }
    loop {
        match take_line(rest) {
            None => return Ending::Cut,
            Some(line) if line.is_empty() => return Ending::Whole,
            Some(line) => answer.trailers.push(line),
        }
    }
}

fn take_line(rest: &mut &[u8]) -> Option<String> {
    let end = rest.windows(2).position(|window| window == b"\r\n")?;
    let line = String::from_utf8_lossy(&rest[..end]).into_owned();
    *rest = &rest[end + 2..];
    Some(line)
}

/// Each line of a head is `name: value` with a token for a name and no control byte.
fn check_lines(head: &str) {
    let lines = head
        .strip_suffix("\r\n\r\n")
        .expect("a head ends with an empty line");
    for line in lines.split("\r\n").skip(1) {
        let (name, value) = line
            .split_once(": ")
            .unwrap_or_else(|| panic!("a field: {line:?}"));
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        assert!(
            !name.is_empty() && name.bytes().all(is_token),
            "a name: {line:?}"
        );
        assert!(
            !value.bytes().any(|byte| byte.is_ascii_control()),
            "a value: {line:?}"
        );
    }
}
