//! Lines without what differs from run to run.

/// A line of an error log: its level and message, without time, process and number of the connection; the ports of
/// clients are `CLIENT`. `None` for notices of the process.
pub(super) fn of_error_log(line: &str, ports: &[(u16, String)]) -> Option<String> {
    let (_, rest) = line.split_once(" [")?;
    let (level, rest) = rest.split_once("] ")?;
    let (_, rest) = rest.split_once(": ")?;
    let message = rest.strip_prefix('*')?.split_once(' ')?.1;
    Some(format!("[{level}] {}", named(message, ports)))
}

/// Whole lines: nginx writes line breaks of clients as they are.
pub(super) fn joined(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines() {
        match all.last_mut() {
            Some(last) if !line.starts_with(|c: char| c.is_ascii_digit()) => last.push_str(line),
            _ => all.push(line.to_owned()),
        }
    }
    all
}

/// Without what has come from the client: nginx does not count what it has looked at before (COMPLIANCE.md).
pub(super) fn without_received(shown: &str) -> String {
    let mut out = shown.to_owned();
    for mark in [" TCP 200 ", " from/to client:"] {
        if let Some((before, after)) = out.split_once(mark) {
            let (count, rest) = after.split_once('/').unwrap();
            assert!(count.parse::<u64>().is_ok(), "{count}");
            out = format!("{before}{mark}?/{rest}");
        }
    }
    out
}

/// Known ports by their names, other ones as `CLIENT`, times as `TIME`.
pub(super) fn named(text: &str, ports: &[(u16, String)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("127.0.0.1:") {
        let (before, after) = rest.split_at(at + "127.0.0.1:".len());
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (port, after) = after.split_at(digits);
        let known = ports.iter().find(|(known, _)| known.to_string() == port);
        out.push_str(before);
        out.push_str(known.map_or("CLIENT", |(_, name)| name));
        rest = after;
    }
    out.push_str(rest);
    let words = out.split(' ').map(|word| {
        let bare = word.trim_end_matches(',');
        let is_time = bare.len() >= 5
            && bare.as_bytes()[bare.len() - 4] == b'.'
            && bare
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
            && bare.matches('.').count() == 1;
        if is_time {
            word.replace(bare, "TIME")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What a server has received; in a header of the PROXY protocol without the ports.
pub(super) fn of_header(received: &str) -> String {
    let Some((header, rest)) = received.split_once("\r\n") else {
        return received.to_owned();
    };
    match header.split(' ').collect::<Vec<_>>()[..] {
        ["PROXY", family, source, destination, _, _] => {
            format!("PROXY {family} {source} {destination} PORT PORT\r\n{rest}")
        }
        _ => received.to_owned(),
    }
}
