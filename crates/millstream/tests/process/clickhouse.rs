//! Access logs in a database: a scripted one, which is there, away, and there again.

use crate::client::get;
use crate::site::{Site, free_address, send, wait_until_ended};
use mill_sys::signal::Signal;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Rows that were inserted, one each.
struct Database {
    rows: Receiver<String>,
    is_away: Arc<AtomicBool>,
}

impl Database {
    /// While it is away, it closes each connection without a word.
    fn start(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let (inserted, rows) = channel();
        let is_away = Arc::new(AtomicBool::new(false));
        let away = Arc::clone(&is_away);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if away.load(SeqCst) {
                    continue;
                }
                for row in answer(stream) {
                    let _ = inserted.send(row);
                }
            }
        });
        Self { rows, is_away }
    }

    /// The next rows, without the columns that differ from run to run: times and fingerprints.
    fn next(&self, count: usize) -> Vec<String> {
        let row = |_| {
            let row = self.rows.recv_timeout(Duration::from_secs(30)).unwrap();
            let columns: Vec<&str> = row.split('\t').collect();
            assert_eq!(columns.len(), 14, "{row}");
            [&columns[1..6], &columns[7..11], &columns[13..]]
                .concat()
                .join(" ")
        };
        (0..count).map(row).collect()
    }
}

/// Takes one request; the rows of an insertion.
fn answer(mut stream: TcpStream) -> Vec<String> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, content)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "));
            if length.unwrap().parse() == Ok(content.len()) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
                assert!(head.contains("\r\nX-ClickHouse-User: writer\r\nX-ClickHouse-Key: secret"));
                let is_insertion = head.starts_with("POST /?query=INSERT");
                let rows = content.lines().filter(|_| is_insertion);
                return rows.map(String::from).collect();
            }
        }
        match stream.read(&mut piece) {
            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
            _ => return Vec::new(),
        }
    }
}

fn expected(path: &str, status: u16, length: usize) -> String {
    format!("::ffff:127.0.0.1 3 3 {status} {length} main {path}   0")
}

#[test]
fn requests_are_rows_also_of_the_time_when_the_database_was_away() {
    let (site, address, of_database) = (Site::new(), free_address(), free_address());
    let database = Database::start(of_database);
    let table = format!(
        "access_log clickhouse:{of_database}/default.access_log user=writer password=secret max_wait=10ms vhost=main;"
    );
    site.configure(
        "",
        &format!("{table} server {{ listen {address}; location = /no {{ return 404 none; }} }}"),
    );
    let master = site.start();
    assert_eq!(get(address, "/index.html").unwrap().status, 200);
    assert_eq!(get(address, "/no?x=1").unwrap().status, 404);
    let rows = [expected("/index.html", 200, 6), expected("/no?x=1", 404, 4)];
    assert_eq!(database.next(2), rows);
    database.is_away.store(true, SeqCst);
    for _ in 0..3 {
        assert_eq!(get(address, "/index.html").unwrap().status, 200);
    }
    site.wait_for_log("; another attempt in 1s");
    database.is_away.store(false, SeqCst);
    let row = expected("/index.html", 200, 6);
    assert_eq!(database.next(3), [row.as_str(); 3]);
    site.wait_for_log("they are inserted again");
    // A reload keeps what waits, and the end has it inserted.
    send(master, Signal::Hangup);
    site.wait_for_log("reconfiguring");
    assert_eq!(get(address, "/index.html").unwrap().status, 200);
    send(master, Signal::Quit);
    wait_until_ended(master);
    assert_eq!(database.next(1), [row]);
}
