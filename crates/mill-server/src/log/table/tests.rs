//! Rows and a database that is scripted: one answer for each connection.

use super::*;
use mill_config::Text;
use mill_config::config::LogLevel;
use mill_runtime::time::Duration;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A request: its first line, and its content.
type Request = (String, String);

const OK: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";

/// Answers so many connections, and tells what was asked.
fn serve(listener: TcpListener, answers: &'static [&'static str]) -> Receiver<Request> {
    let (asked, requests) = channel();
    thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            answer_one(stream, answer, &asked);
        }
    });
    requests
}

fn answer_one(mut stream: TcpStream, answer: &str, asked: &Sender<Request>) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, content)) = text.split_once("\r\n\r\n") {
            let length = head.split_once("Content-Length: ").unwrap().1;
            let length = length.lines().next().unwrap().parse::<usize>().unwrap();
            if content.len() == length {
                let _ = asked.send((head.lines().next().unwrap().into(), content.into()));
                break;
            }
        }
        match stream.read(&mut piece).unwrap() {
            0 => return,
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
    stream.write_all(answer.as_bytes()).unwrap();
}

fn table_at(address: SocketAddr, max_events: u64) -> Arc<RowTable> {
    Arc::new(RowTable {
        host: Text::from("127.0.0.1"),
        port: address.port(),
        database: Text::from("default"),
        table: Text::from("access_log"),
        user: Text::from("writer"),
        password: Text::from("secret"),
        max_events,
        max_wait: Duration::from_millis(20),
    })
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Tables whose threads try again soon.
fn tables() -> Tables {
    Tables {
        delays: Delays {
            first: Duration::from_millis(5),
            longest: Duration::from_millis(20),
        },
        ..Tables::default()
    }
}

fn append(tables: &mut Tables, table: &Arc<RowTable>, rows: &str) {
    let count = rows.matches('\n').count() as u64;
    assert!(tables.append(table, rows.as_bytes(), count, Instant::default()));
}

/// Waits until something is said that contains this, and returns the rows that were lost meanwhile.
fn wait_for(tables: &mut Tables, text: &str) -> u64 {
    let mut lost = 0;
    for _ in 0..2000 {
        let mut is_said = false;
        for (path, fault, rows) in tables.take_reports() {
            lost += rows;
            if let Some(Fault::Table { level, text: said }) = fault {
                assert!(path.starts_with(b"clickhouse:127.0.0.1:"));
                assert!(matches!(level, LogLevel::Error | LogLevel::Notice));
                is_said |= said.contains(text);
            }
        }
        if is_said {
            return lost;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    panic!("nothing said of \"{text}\"");
}

/// The contents of the next insertions until they have so many rows; tables that are created between them are counted.
fn inserted(requests: &Receiver<Request>, rows: usize) -> (String, usize) {
    let (mut all, mut created) = (String::new(), 0);
    while all.lines().count() < rows {
        let (line, content) = requests.recv_timeout(Duration::from_secs(20)).unwrap();
        match line.as_str() {
            "POST / HTTP/1.1" => {
                let begin = "CREATE TABLE IF NOT EXISTS `default`.`access_log` (timestamp DateTime64(3, 'UTC'), ";
                assert!(content.starts_with(begin), "{content}");
                assert!(content.ends_with(") ENGINE = MergeTree() ORDER BY timestamp"));
                created += 1;
            }
            _ => {
                let begin = "POST /?query=INSERT%20INTO%20%60default%60.%60access_log%60%20%28timestamp%2Caddress%2C";
                let end = "%2Ctfh%2Cdropped_events%29%20FORMAT%20TabSeparated HTTP/1.1";
                assert!(line.starts_with(begin) && line.ends_with(end), "{line}");
                all.push_str(&content);
            }
        }
    }
    (all, created)
}

#[test]
fn the_table_is_created_and_rows_are_inserted_in_their_order() {
    let (listener, address) = listener();
    let requests = serve(listener, &[OK; 50]);
    let (mut tables, table) = (tables(), table_at(address, 2));
    append(&mut tables, &table, "a\t1\nb\t2\nc\t3\n");
    append(&mut tables, &table, "d\t4\n");
    let (rows, created) = inserted(&requests, 4);
    assert_eq!(
        (rows.as_str(), created),
        ("a\t1\t0\nb\t2\t0\nc\t3\t0\nd\t4\t0\n", 1)
    );
    append(&mut tables, &table, "e\t5\n");
    tables.finish();
    assert_eq!(inserted(&requests, 1), (String::from("e\t5\t0\n"), 0));
    assert!(tables.take_reports().is_empty());
}

#[test]
fn rows_wait_for_a_database_that_is_down() {
    let (listener, address) = listener();
    drop(listener);
    let (mut tables, table) = (tables(), table_at(address, 1000));
    append(&mut tables, &table, "a\t1\n");
    wait_for(&mut tables, "Connection refused");
    append(&mut tables, &table, "b\t2\n");
    let requests = serve(TcpListener::bind(address).unwrap(), &[OK; 50]);
    let (rows, created) = inserted(&requests, 2);
    assert_eq!((rows.as_str(), created), ("a\t1\t0\nb\t2\t0\n", 1));
    assert_eq!(wait_for(&mut tables, "inserted again"), 0);
    tables.finish();
}

#[test]
fn a_table_that_is_gone_is_created_again() {
    let (listener, address) = listener();
    const GONE: &str = "HTTP/1.1 404 Not Found\r\n\r\nCode: 60. DB::Exception: no such table";
    let requests = serve(listener, &[OK, GONE, OK, OK]);
    let (mut tables, table) = (tables(), table_at(address, 1));
    append(&mut tables, &table, "a\t1\n");
    assert_eq!(inserted(&requests, 1), (String::from("a\t1\t0\n"), 1));
    assert_eq!(inserted(&requests, 1), (String::from("a\t1\t0\n"), 1));
    tables.finish();
    assert!(tables.take_reports().is_empty());
}

#[test]
fn rows_that_are_refused_are_lost_and_the_next_row_tells_how_many() {
    let (listener, address) = listener();
    const BAD: &str = "HTTP/1.1 400 Bad Request\r\n\r\nCode: 27. DB::Exception: bad row";
    let requests = serve(listener, &[OK, BAD, OK]);
    let (mut tables, table) = (tables(), table_at(address, 2));
    append(&mut tables, &table, "a\t1\nb\t2\n");
    assert_eq!(inserted(&requests, 2).0, "a\t1\t0\nb\t2\t0\n");
    assert_eq!(wait_for(&mut tables, "bad row"), 2);
    append(&mut tables, &table, "c\t3\n");
    assert_eq!(inserted(&requests, 1).0, "c\t3\t2\n");
    tables.finish();
}

#[test]
fn what_cannot_be_inserted_at_the_end_is_counted() {
    let (listener, address) = listener();
    drop(listener);
    let (mut tables, table) = (tables(), table_at(address, 1));
    append(&mut tables, &table, "a\t1\nb\t2\n");
    wait_for(&mut tables, "Connection refused");
    append(&mut tables, &table, "c\t3\n");
    tables.finish();
    assert_eq!(wait_for(&mut tables, "lost at the end"), 3);
}

#[test]
fn idle_tables_end_and_begin_anew() {
    let (listener, address) = listener();
    let requests = serve(listener, &[OK; 4]);
    let (mut tables, table) = (tables(), table_at(address, 1));
    append(&mut tables, &table, "a\t1\n");
    assert_eq!(inserted(&requests, 1).1, 1);
    for _ in 0..2000 {
        tables.end_idle();
        if tables.all.is_empty() {
            break;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
    assert!(tables.all.is_empty());
    append(&mut tables, &table, "b\t2\n");
    assert_eq!(inserted(&requests, 1), (String::from("b\t2\t0\n"), 1));
    tables.finish();
}

#[test]
fn the_writer_looks_again_when_rows_have_waited() {
    let (listener, address) = listener();
    let _requests = serve(listener, &[OK; 4]);
    let (mut tables, table) = (tables(), table_at(address, 1));
    assert_eq!(tables.deadline(), Instant::FAR);
    append(&mut tables, &table, "a\n");
    let due = Instant::default() + table.max_wait;
    assert_eq!(tables.deadline(), due);
    tables.expire(due);
    assert_eq!(tables.deadline(), Instant::FAR);
    tables.finish();
}
