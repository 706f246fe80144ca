//! Tables of messages as text: a line is `NAME | STATUSES | BYTES`.
//!
//! `¶` is CR LF; `\r` `\n` `\t` `\0` `\xHH` `\\` are bytes; `{a*9}` is repetition; `⏸` waits before the rest is sent.

/// One line of a table.
#[derive(Debug)]
pub(crate) struct Payload {
    pub(crate) name: &'static str,
    /// The statuses that the client gets, with blanks between them.
    pub(crate) statuses: &'static str,
    /// Sent one after the other.
    pub(crate) parts: Vec<Vec<u8>>,
}

/// All lines of a table but empty ones and those that begin with `#`.
pub(crate) fn table(text: &'static str) -> Vec<Payload> {
    let lines = text.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let payload = |line: &'static str| {
        let mut columns = line.splitn(3, '|');
        let mut column = || columns.next().expect("three columns");
        Payload {
            name: column().trim(),
            statuses: column().trim(),
            parts: column().trim_start().split('⏸').map(unescape).collect(),
        }
    };
    lines.map(payload).collect()
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '¶' => bytes.extend_from_slice(b"\r\n"),
            '\\' => bytes.push(escape(&mut rest)),
            '{' => {
                let inside: String = rest.by_ref().take_while(|byte| *byte != '}').collect();
                let (unit, count) = inside.rsplit_once('*').expect("a repetition");
                let count = count.parse().expect("a count");
                bytes.extend(unescape(unit).repeat(count));
            }
            character => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

fn escape(rest: &mut std::str::Chars<'_>) -> u8 {
    match rest.next() {
        Some('r') => b'\r',
        Some('n') => b'\n',
        Some('t') => b'\t',
        Some('0') => 0,
        Some('\\') => b'\\',
        Some('x') => {
            let digits: String = rest.by_ref().take(2).collect();
            u8::from_str_radix(&digits, 16).expect("two hexadecimal digits")
        }
        other => panic!("no such escape: {other:?}"),
    }
}
