//! Requests to ClickHouse's HTTP interface: a connection for each.

use mill_config::config::log::RowTable;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Why rows are not inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The database says that there is no such table.
    NoTable(String),
    /// It cannot take these rows, whenever they come.
    Refused(String),
    /// It may take them later.
    Unreached(String),
}

/// What it answers.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    /// The number of its exception.
    code: Option<u32>,
    /// The first line of its text.
    text: String,
}

/// Creates the table, unless there is one.
pub(super) fn create(table: &RowTable, time: Duration) -> Result<(), Fault> {
    let statement = format!(
        "CREATE TABLE IF NOT EXISTS {} ({COLUMNS}) ENGINE = MergeTree() ORDER BY timestamp",
        name_of(table)
    );
    ask(table, "/", statement.as_bytes(), time)
}

/// Inserts rows in TabSeparated.
pub(super) fn insert(table: &RowTable, rows: &[u8], time: Duration) -> Result<(), Fault> {
    let columns = COLUMNS.split(", ");
    let columns = columns.filter_map(|column| column.split(' ').next());
    let columns: Vec<&str> = columns.filter(|name| !name.starts_with('\'')).collect();
    let statement = format!(
        "INSERT INTO {} ({}) FORMAT TabSeparated",
        name_of(table),
        columns.join(",")
    );
    let path = format!("/?query={}", encoded(&statement));
    ask(table, &path, rows, time)
}

/// One request. Its rows count as inserted with the answer 200.
fn ask(table: &RowTable, path: &str, content: &[u8], time: Duration) -> Result<(), Fault> {
    let unreached = |error: io::Error| Fault::Unreached(error.to_string());
    let mut stream = connect(table, time).map_err(unreached)?;
    let answer = exchange(&mut stream, &head(table, path, content.len()), content);
    judge(&answer.map_err(unreached)?)
}

fn connect(table: &RowTable, time: Duration) -> io::Result<TcpStream> {
    let host = table.host.display();
    let mut failed = io::Error::new(io::ErrorKind::NotFound, format!("host not found: {host}"));
    for address in (&*host, table.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, time.min(CONNECT_TIME)) {
            Ok(stream) => {
                stream.set_read_timeout(Some(time))?;
                stream.set_write_timeout(Some(time))?;
                return Ok(stream);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The answer to a request, up to the end of the connection or of what is looked at.
fn exchange(stream: &mut TcpStream, head: &[u8], content: &[u8]) -> io::Result<Vec<u8>> {
    let written = stream
        .write_all(head)
        .and_then(|()| stream.write_all(content));
    let mut answer = Vec::new();
    let read = stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
    // What was said before the end counts, also if not all of the request was read.
    if answer.is_empty() {
        written?;
        read?;
    }
    Ok(answer)
}

fn head(table: &RowTable, path: &str, length: usize) -> Vec<u8> {
    let (host, port) = (table.host.display(), table.port);
    let host = match host.contains(':') {
        true => format!("[{host}]"),
        false => host.into_owned(),
    };
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\n"
    )
    .into_bytes();
    let account = [("User", &table.user), ("Key", &table.password)];
    for (name, value) in account.iter().filter(|(_, value)| !value.is_empty()) {
        head.extend_from_slice(format!("X-ClickHouse-{name}: ").as_bytes());
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The table with its database, in the quotes of names.
fn name_of(table: &RowTable) -> String {
    let (database, name) = (table.database.display(), table.table.display());
    format!("`{database}`.`{name}`")
}

/// As a part of a query (RFC 3986 2.1).
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

fn judge(answer: &[u8]) -> Result<(), Fault> {
    let Some(answer) = parse(answer) else {
        let text = shown(answer);
        return Err(Fault::Unreached(match text.is_empty() {
            true => String::from("no answer of HTTP"),
            false => format!("no answer of HTTP: {text}"),
        }));
    };
    match (answer.status, answer.code) {
        (200, None) => Ok(()),
        (_, Some(UNKNOWN_TABLE)) => Err(Fault::NoTable(answer.text)),
        (400, _) => Err(Fault::Refused(answer.text)),
        (status, _) => Err(Fault::Unreached(format!("{status}, {}", answer.text))),
    }
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, content) = bytes.split_at(end);
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let status = lines.next()?.strip_prefix("HTTP/1.")?;
    let status = status.split(' ').nth(1)?.parse().ok()?;
    let field = |line: &str| -> Option<u32> {
        let (name, value) = line.split_once(':')?;
        let is_code = name.eq_ignore_ascii_case("X-ClickHouse-Exception-Code");
        is_code.then(|| value.trim().parse().ok())?
    };
    // Content in chunks begins with the length of one.
    let content = String::from_utf8_lossy(content);
    let said = content.find("Code: ").and_then(|at| content.get(at..));
    let of_text = said.and_then(|said| {
        let digits = said.strip_prefix("Code: ")?;
        digits
            .split(|end: char| !end.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    });
    let code = lines.find_map(field).or(of_text);
    let text = shown(said.unwrap_or(&content).trim().as_bytes());
    Some(Answer { status, code, text })
}

/// The first line of a text, for logs.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().next().unwrap_or_default();
    let plain = line.chars().filter(|char| !char.is_control());
    plain.take(SHOWN_MAX).collect()
}

/// Those of Tempesta FW's logger (logger/access_log_plugin/access_log_clickhouse.cc).
const COLUMNS: &str = "timestamp DateTime64(3, 'UTC'), address IPv6, method UInt8, version UInt8, status UInt16, \
    response_content_length UInt64, response_time UInt32, vhost String, uri String, referer String, user_agent String, \
    tft UInt64, tfh UInt64, dropped_events UInt64";

/// ClickHouse's number for a table that does not exist.
const UNKNOWN_TABLE: u32 = 60;

/// What is read of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Characters of an answer in a log.
const SHOWN_MAX: usize = 300;

/// The longest that a connection may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str, expected: Result<(), Fault>) {
        assert_eq!(judge(answer.as_bytes()), expected, "{answer}");
    }

    #[test]
    fn what_is_tried_again_and_what_is_not() {
        check("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", Ok(()));
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Ok(()),
        );
        let (no_table, refused) = (
            "Code: 60. DB::Exception: no table",
            "Code: 27. DB::Exception: bad row",
        );
        check(
            &format!(
                "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2a\r\n{no_table}\r\n0\r\n\r\n"
            ),
            Err(Fault::NoTable(String::from(no_table))),
        );
        check(
            &format!(
                "HTTP/1.1 400 Bad Request\r\nx-clickhouse-exception-code: 27\r\n\r\n{refused}\nstack"
            ),
            Err(Fault::Refused(String::from(refused))),
        );
        let unreached = |text: &str| Err(Fault::Unreached(String::from(text)));
        check(
            "HTTP/1.1 516 \r\n\r\nCode: 516. wrong password",
            unreached("516, Code: 516. wrong password"),
        );
        // An exception behind the head of a success.
        check(
            "HTTP/1.1 200 OK\r\n\r\nCode: 241. memory",
            unreached("200, Code: 241. memory"),
        );
        check("", unreached("no answer of HTTP"));
        check(
            "Port 9000 is for clickhouse-client program\r\n",
            unreached("no answer of HTTP: Port 9000 is for clickhouse-client program"),
        );
    }
}
