//! Copies of answers as files.

use super::Proxy;
use super::origin::{Act, ok, send};
use mill_runtime::time::UnixTime;

/// A proxy that keeps copies, before an origin that does this.
fn proxy(directives: &str, acts: Vec<Act>) -> Proxy {
    let directives = format!(
        "proxy_temp_path /temp; proxy_http_version 1.1;
         location / {{ proxy_pass http://app; {directives} }}"
    );
    Proxy::new(&directives, move |_, _| acts.clone())
}

fn ask(proxy: &mut Proxy, request: &str) -> String {
    let client = proxy.server.connect();
    client.send(format!("{request} HTTP/1.1\r\nHost: a\r\n\r\n"));
    proxy.server.run_until_idle();
    String::from_utf8_lossy(&client.received()).into_owned()
}

#[test]
fn a_whole_answer_is_kept_at_the_path_of_the_request_or_of_the_directive() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let until_close = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc";
    for acts in [
        vec![ok("abc")],
        vec![send(chunked)],
        vec![send(until_close), Act::Close],
    ] {
        for (directive, path) in [
            ("proxy_store on;", "/site/x/y.txt"),
            ("proxy_store on; root /data;", "/data/x/y.txt"),
            ("proxy_store /kept$uri.$arg_a;", "/kept/x/y.txt.b"),
            ("proxy_store on; proxy_buffering off;", "/site/x/y.txt"),
        ] {
            let mut proxy = proxy(directive, acts.clone());
            let answer = ask(&mut proxy, "GET /x/y.txt?a=b");
            assert!(answer.contains("abc"), "{answer}");
            assert_eq!(proxy.server.files().read(path), b"abc", "{directive}");
            assert_eq!(proxy.server.files().names("/temp"), [] as [&str; 0]);
        }
    }
}

#[test]
fn a_copy_has_the_date_of_the_answer() {
    let head = "HTTP/1.1 200 OK\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 1\r\n\r\nx";
    let mut proxy = proxy("proxy_store on;", vec![send(head)]);
    ask(&mut proxy, "GET /a/b");
    let modified = proxy.server.files().modified("/site/a/b");
    assert_eq!(modified, UnixTime::from_seconds(784_111_777));
}

#[test]
fn nothing_is_kept_of_other_answers_or_of_a_part() {
    let cut = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
    let not_found = "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx";
    for (directive, request, acts) in [
        ("on", "GET /n/x", vec![send(cut), Act::Close]),
        ("on", "GET /n/x", vec![send(not_found)]),
        (
            "on",
            "HEAD /n/x",
            vec![send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")],
        ),
        (
            "on; proxy_method HEAD",
            "GET /n/x",
            vec![send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")],
        ),
        ("off", "GET /n/x", vec![ok("abc")]),
        (
            "on; proxy_force_ranges on; max_ranges 1",
            "GET /n/x",
            vec![send(cut), Act::Reset],
        ),
    ] {
        let mut proxy = proxy(&format!("proxy_store {directive};"), acts);
        ask(&mut proxy, request);
        assert_eq!(
            proxy.server.files().names("/site/n"),
            [] as [&str; 0],
            "{request}"
        );
        assert_eq!(
            proxy.server.files().names("/temp"),
            [] as [&str; 0],
            "{request}"
        );
        assert_eq!(proxy.server.files().open_files(), 0);
    }
}

#[test]
fn a_full_disk_costs_the_copy_and_not_the_answer() {
    let mut proxy = proxy("proxy_store on;", vec![ok(&"a".repeat(10_000))]);
    proxy.server.files().set_disk_bytes_max(5000);
    let answer = ask(&mut proxy, "GET /n/x");
    assert!(answer.ends_with(&"a".repeat(10_000)));
    assert_eq!(proxy.server.files().names("/temp"), [] as [&str; 0]);
    assert!(
        proxy
            .server
            .has_logged("failed (28: No space left on device)")
    );
}

#[test]
fn a_copy_that_gets_no_name_is_logged_with_its_request_and_removed() {
    let mut proxy = proxy("proxy_store /site/full/x;", vec![ok("abc")]);
    // A file stands where the directory should be.
    proxy.server.files().write("/site/full", b"");
    assert!(ask(&mut proxy, "GET /n").ends_with("abc"));
    let logged =
        "while reading upstream, client: 198.51.100.1, server: , request: \"GET /n HTTP/1.1\"";
    assert!(
        proxy.server.has_logged(logged),
        "{:?}",
        proxy.server.error_log()
    );
    assert_eq!(proxy.server.files().names("/temp"), [] as [&str; 0]);
}
