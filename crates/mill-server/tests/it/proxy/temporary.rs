//! Contents that memory has no room for, in temporary files.

use super::origin::{Act, ok, send};
use super::{KEPT, ORIGIN, Proxy, content, get};
use crate::answer::answer;
use crate::server::{BIG_BYTES, big};

/// Everything is passed on; temporary files are in `/temp`.
fn passing(more: &str) -> String {
    format!("client_body_temp_path /temp; proxy_temp_path /temp 1 2; {more} {KEPT}")
}

/// An origin with a large answer, which ends as `head` says.
fn large(directives: &str, head: &'static str) -> Proxy {
    let content = std::str::from_utf8(big()).expect("it is ASCII");
    Proxy::new(&passing(directives), move |_, _| {
        vec![send(&format!("{head}\r\n\r\n{content}")), Act::Close]
    })
}

const WITH_LENGTH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1048576";
const UNTIL_CLOSE: &str = "HTTP/1.1 200 OK";

fn post(method: &str, bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len();
    let head = format!("{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: {len}\r\n\r\n");
    [head.as_bytes(), bytes].concat()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_big(content: &str) -> bool {
    content.as_bytes() == big()
}

#[test]
fn a_server_is_done_long_before_a_slow_client_and_memory_is_bounded() {
    for head in [WITH_LENGTH, UNTIL_CLOSE] {
        let mut proxy = large("", head);
        let client = proxy.server.connect();
        client.stop_reading().send(get("/"));
        proxy.server.run();
        assert!(client.received().len() < BIG_BYTES / 4);
        assert_eq!(
            proxy.server.streams(),
            1,
            "the connection to the server is over"
        );
        let in_file = proxy.server.files().disk_bytes_peak();
        assert!(in_file > BIG_BYTES / 2, "{in_file} bytes are in the file");
        client.read_on();
        proxy.server.run();
        let answer = text(&client.received());
        if head == WITH_LENGTH {
            assert!(is_big(content(&answer)));
        } else {
            assert!(answer.ends_with("\r\n0\r\n\r\n"), "whole, in chunks");
        }
        assert!(proxy.server.has_logged(
            "an upstream response is buffered to a temporary file /temp/1/00/0000000001 while reading upstream, client: "
        ));
        assert_eq!(proxy.server.files().open_files(), 0);
        assert_eq!(proxy.server.files().names("/temp"), [] as [&str; 0]);
    }
}

#[test]
fn a_file_that_was_given_out_is_begun_anew() {
    let mut proxy = large("proxy_max_temp_file_size 128k;", WITH_LENGTH);
    let client = proxy.server.connect();
    client.read_at_rate(1 << 18).send(get("/"));
    proxy.server.run_until_idle();
    assert!(is_big(content(&text(&client.received()))));
    let calls = proxy.server.files().calls();
    assert!(calls.create >= 2, "{calls:?}");
    let peak = proxy.server.files().disk_bytes_peak();
    assert!(peak <= 2 * (128 << 10), "{peak}");
    let lines = proxy.server.error_log();
    let is_warning = |line: &&String| line.contains("is buffered to a temporary file");
    assert_eq!(lines.iter().filter(is_warning).count(), 1);
}

#[test]
fn without_room_for_files_the_server_waits_for_the_client() {
    for directive in ["proxy_max_temp_file_size 0;", "proxy_buffering off;"] {
        let mut proxy = large(directive, WITH_LENGTH);
        let client = proxy.server.connect();
        client.stop_reading().send(get("/"));
        proxy.server.run();
        assert_eq!(proxy.server.streams(), 2, "{directive}");
        client.read_on();
        proxy.server.run();
        assert!(is_big(content(&text(&client.received()))), "{directive}");
        assert_eq!(proxy.server.files().calls().create, 0, "{directive}");
    }
}

#[test]
fn compression_and_sendfile_off_read_the_file() {
    for directive in ["sendfile off;", "gzip on; gzip_types *;"] {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\nContent-Type: text/html";
        let mut proxy = large(directive, head);
        let client = proxy.server.connect();
        let request = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
        client.read_at_rate(1 << 14).send(request);
        proxy.server.run();
        client.read_on();
        proxy.server.run();
        let answer = answer(&client.received());
        if directive == "sendfile off;" {
            assert_eq!(answer.content, big());
        } else {
            assert_eq!(answer.unzipped(), big());
        }
        assert!(proxy.server.files().calls().read_at > 0, "{directive}");
    }
}

#[test]
fn when_the_disk_is_full_the_server_waits_for_the_client() {
    for disk_bytes_max in [0, 1000, 100_000] {
        let mut proxy = large("", WITH_LENGTH);
        proxy.server.files().set_disk_bytes_max(disk_bytes_max);
        let client = proxy.server.connect();
        client.stop_reading().send(get("/"));
        proxy.server.run();
        assert_eq!(proxy.server.streams(), 2, "{disk_bytes_max}");
        client.read_on();
        proxy.server.run();
        let answer = text(&client.received());
        assert!(is_big(content(&answer)), "{disk_bytes_max}");
        assert!(proxy.server.has_logged(
            "pwrite() \"/temp/1/00/0000000001\" failed (28: No space left on device) while reading upstream, client: "
        ));
        assert_eq!(proxy.server.counters().upstream_answers_cut, 0);
        assert_eq!(proxy.server.files().open_files(), 0);
    }
}

#[test]
fn content_that_ends_early_is_not_taken_for_whole_content() {
    for (request, head) in [
        (get("/"), WITH_LENGTH),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), WITH_LENGTH),
    ] {
        let mut proxy = Proxy::new(&passing(""), move |_, _| {
            vec![send(&format!("{head}\r\n\r\nabc")), Act::Close]
        });
        let client = proxy.server.connect();
        client.send(request);
        proxy.server.run();
        assert!(text(&client.received()).ends_with("\r\n\r\nabc"));
        assert!(client.is_closed());
        assert_eq!(proxy.server.counters().upstream_answers_cut, 1);
    }
    // A client of HTTP/1.0 sees chunks as content that ends with the connection: that is reset.
    let mut proxy = Proxy::new(&passing(""), |_, _| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        vec![send(&format!("{head}3\r\nabc\r\n")), Act::Close]
    });
    let client = proxy.server.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    proxy.server.run();
    assert!(client.was_reset());
}

#[test]
fn without_a_directory_for_files_the_server_waits_for_the_client() {
    let mut proxy = large("", WITH_LENGTH);
    proxy.server.files().create_directory("/temp");
    proxy.server.files().set_readable("/temp", false);
    let client = proxy.server.connect();
    client.stop_reading().send(get("/"));
    proxy.server.run();
    assert_eq!(proxy.server.streams(), 2);
    client.read_on();
    proxy.server.run();
    assert!(is_big(content(&text(&client.received()))));
    let line =
        "open() \"/temp/1/00/0000000001\" failed (13: Permission denied) while reading upstream";
    assert!(
        proxy.server.has_logged(line),
        "{:?}",
        proxy.server.error_log()
    );
}

#[test]
fn content_beyond_the_buffer_goes_through_a_file() {
    let chunk =
        |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let head: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunked: Vec<u8> = big().chunks(10_000).flat_map(chunk).collect();
    let chunked = [head, &chunked, b"0\r\n\r\n"].concat();
    for request in [post("POST", big()), chunked] {
        for directive in ["sendfile on;", "sendfile off;"] {
            let mut proxy = Proxy::new(&passing(directive), |_, _| vec![ok("x")]);
            let client = proxy.server.connect();
            client.send(&request);
            proxy.server.run();
            assert_eq!(content(&text(&client.received())), "x");
            let asked = proxy.asked();
            assert!(asked[0].contains("\r\nContent-Length: 1048576\r\n"));
            assert!(is_big(content(&asked[0])));
            assert_eq!(proxy.server.files().disk_bytes_peak(), BIG_BYTES);
            assert_eq!(proxy.server.files().open_files(), 0);
            assert!(proxy.server.has_logged(
                "a client request body is buffered to a temporary file /temp/0000000001, client: "
            ));
        }
    }
}

#[test]
fn content_of_known_length_stays_in_memory_up_to_a_quarter_beyond_the_buffer() {
    let check = |len: usize, files: usize| {
        let directives = passing("client_body_buffer_size 1000;");
        let mut proxy = Proxy::new(&directives, |_, _| vec![ok("x")]);
        let bytes = vec![b'a'; len];
        let request = text(&post("POST", &bytes));
        assert_eq!(content(&proxy.ask(&request)), "x");
        assert_eq!(content(&proxy.asked()[0]).len(), len);
        assert_eq!(proxy.server.files().calls().create, files, "{len}");
    };
    check(1000, 0);
    check(1250, 0);
    check(1251, 1);
}

#[test]
fn every_try_sends_the_whole_file() {
    let upstream = format!("server {ORIGIN}; server {ORIGIN}; server {ORIGIN};");
    let directives = passing("proxy_next_upstream http_503;");
    let mut proxy = Proxy::with_upstream(&upstream, &directives, |number, _| match number {
        0 | 1 => vec![send("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")],
        _ => vec![ok("x")],
    });
    let client = proxy.server.connect();
    client.send(post("PUT", big()));
    proxy.server.run();
    assert_eq!(content(&text(&client.received())), "x");
    let asked = proxy.asked();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|request| is_big(content(request))));
}

#[test]
fn a_full_disk_refuses_content_with_500_and_no_server_is_asked() {
    let mut proxy = Proxy::new(&passing(""), |_, _| vec![ok("x")]);
    proxy.server.files().set_disk_bytes_max(100_000);
    let client = proxy.server.connect();
    client.send(post("POST", big()));
    proxy.server.run_until_idle();
    let answer = text(&client.received());
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(client.is_closed());
    assert_eq!(*proxy.seen.connections.borrow(), 0);
    assert!(proxy.server.has_logged(
        "pwrite() \"/temp/0000000001\" failed (28: No space left on device), client: "
    ));
    proxy.server.assert_nothing_left(0);
}

#[test]
fn content_is_kept_in_files_on_request_and_variables_show_it() {
    let check = |directive: &str, len: usize, expected: &str, names: &[&str]| {
        let fields = "add_header X-File $request_body_file; add_header X-Body $request_body;";
        let directives = passing(&format!("{directive} {fields}"));
        let mut proxy = Proxy::new(&directives, |_, _| vec![ok("x")]);
        let request = text(&post("POST", &vec![b'a'; len]));
        let answer = proxy.ask(&request);
        let (head, _) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(expected), "{directive} {head}");
        assert_eq!(content(&proxy.asked()[0]).len(), len);
        assert_eq!(proxy.server.files().names("/temp"), names, "{directive}");
        if let [name] = names {
            let path = format!("/temp/{name}");
            assert_eq!(proxy.server.files().read(&path).len(), len);
        }
    };
    check("client_body_in_file_only off;", 3, "X-Body: aaa", &[]);
    let in_file = "X-File: /temp/0000000001";
    check("client_body_in_file_only off;", 50_000, in_file, &[]);
    check("client_body_in_file_only on;", 3, in_file, &["0000000001"]);
    check("client_body_in_file_only clean;", 3, in_file, &[]);
}
