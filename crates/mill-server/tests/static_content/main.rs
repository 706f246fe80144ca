//! Files, indexes, listings and filters over simulated files: the answers, field by field. The expected ones are nginx
//! 1.22.1's.

#![forbid(unsafe_code)]

/// An exchange that records the answer.
#[path = "../recorder/mod.rs"]
mod recorder;

/// One configuration over a small site.
mod server;

/// The directives of `charset`.
mod charset;

/// Answers for browsers with faults.
mod browsers;

use server::Server;

#[test]
fn a_file_is_answered_with_its_validators_and_type() {
    let server = Server::new("");
    let validators = "modified {date} | \"6955b900-a\"";
    server.check(
        "GET /a.txt",
        &format!("200 | text/plain | {validators} | Accept-Ranges: bytes | 0123456789"),
    );
    server.check(
        "GET /empty.txt",
        "200 | text/plain | modified {date} | \"6955b900-0\" | Accept-Ranges: bytes",
    );
    server.check("POST /a.txt", "405 | text/html");
    server.check("PUT /", "405 | text/html");
    server.check("GET /dir?a=b", "301 | text/html | http://a:8123/dir/?a=b");
}

#[test]
fn what_is_not_there_is_404_and_logged() {
    let server = Server::new("location /quiet { log_not_found off; }");
    let check = |target: &str, error: &str| {
        server.check(&format!("GET {target}"), "404 | text/html");
        assert_eq!(server.last_error(), error);
    };
    check(
        "/nope",
        "error open() \"/srv/nope\" failed (2: No such file or directory)",
    );
    check(
        "/a.txt/b",
        "error open() \"/srv/a.txt/b\" failed (20: Not a directory)",
    );
    check(
        "/nope/",
        "error \"/srv/nope/index.html\" is not found (2: No such file or directory)",
    );
    check(
        "/a.txt/",
        "error \"/srv/a.txt/index.html\" is not found (20: Not a directory)",
    );
    let before = server.last_error();
    check("/quiet", &before);
    server.check("GET /none/", "403 | text/html");
    let forbidden = "error directory index of \"/srv/none/\" is forbidden";
    assert_eq!(server.last_error(), forbidden);
}

#[test]
fn dot_segments_do_not_leave_an_alias() {
    let server = Server::new("location /d { alias /srv/dir/; }");
    server.check("GET /d../a.txt", "404 | text/html");
    let error = "error \"/srv/dir/../a.txt\" leads out of its root";
    assert_eq!(server.last_error(), error);
}

#[test]
fn the_first_index_that_is_there_answers() {
    let check = |index: &str, target: &str, content: &str| {
        let server = Server::new(&format!("etag off; index {index};"));
        let answer = server.ask(&format!("GET {target}"));
        assert!(
            answer.ends_with(&format!(" | {content}")),
            "{index}: {answer}"
        );
    };
    check("index.html", "/dir/", "index");
    check("nope other.html index.html", "/dir/", "other");
    check("$arg_i index.html", "/dir/?i=other.html", "other");
    check("nope /a.txt", "/none/", "0123456789");
}

#[test]
fn gzip_static_sends_the_compressed_file_to_clients_that_accept_it() {
    let server = Server::new("gzip_static on; gzip_vary on; etag off;");
    let zipped = "200 | text/plain | modified {date} | vary | Content-Encoding: gzip | zipped";
    let plain = "200 | text/plain | modified {date} | vary | Accept-Ranges: bytes | plain";
    server.check("GET /z.txt | Accept-Encoding: gzip", zipped);
    server.check("GET /z.txt", plain);
    server.check("GET /z.txt | Accept-Encoding: gzip;q=0", plain);
    server.check(
        "GET /z.txt | Accept-Encoding: gzip | Range: bytes=0-1",
        zipped,
    );
    server.check(
        "GET /a.txt | Accept-Encoding: gzip",
        "200 | text/plain | modified {date} | Accept-Ranges: bytes | 0123456789",
    );
    let always = Server::new("gzip_static always; etag off;");
    always.check("GET /z.txt", &zipped.replace(" | vary", ""));
}

#[test]
fn answers_worth_compressing_are_compressed() {
    let server = Server::new(
        "gzip on; gzip_vary on;
        location = /text { default_type text/html; return 200 \"hello, hello, hello, hello\"; }
        location = /short { default_type text/html; return 200 \"hello\"; }",
    );
    let page = "<p>the mill stream</p>".repeat(100);
    let zipped = format!(
        "200 | text/html | modified {{date}} | vary | W/\"6955b900-898\" | Content-Encoding: gzip | {page}"
    );
    let plain = format!(
        "200 | text/html | modified {{date}} | vary | \"6955b900-898\" | Accept-Ranges: bytes | {page}"
    );
    server.check("GET /long.html | Accept-Encoding: gzip", &zipped);
    server.check("GET /long.html", &plain);
    server.check(
        "GET /long.html | Accept-Encoding: gzip | Via: 1.1 b",
        &plain,
    );
    server.check(
        "GET /text | Accept-Encoding: gzip",
        "200 | text/html | vary | Content-Encoding: gzip | hello, hello, hello, hello",
    );
    server.check(
        "GET /short | Accept-Encoding: gzip",
        "200 | text/html | hello",
    );
    server.check(
        "GET /nope | Accept-Encoding: gzip",
        "404 | text/html | vary | Content-Encoding: gzip",
    );
}

#[test]
fn conditions_are_judged_on_what_would_be_sent() {
    let server = Server::new("add_header X-A a; add_header X-B b always; expires epoch;");
    let added =
        "Expires: Thu, 01 Jan 1970 00:00:01 GMT | Cache-Control: no-cache | X-A: a | X-B: b";
    let not_modified = format!("304 | modified {{date}} | \"6955b900-a\" | {added}");
    server.check(
        "GET /a.txt | If-None-Match: W/\"6955b900-a\"",
        &not_modified,
    );
    server.check("GET /a.txt | If-None-Match: *", &not_modified);
    server.check("GET /a.txt | If-Match: \"x\"", "412 | text/html | X-B: b");
    server.check(
        "GET /a.txt | If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT",
        "412 | text/html | X-B: b",
    );
    server.check("GET /nope | If-None-Match: *", "404 | text/html | X-B: b");
}

#[test]
fn a_failed_condition_gets_its_error_page() {
    let server = Server::new("etag off; error_page 412 416 /z.txt;");
    let page = |status: &str| format!("{status} | text/plain");
    server.check("GET /a.txt | If-Match: \"x\"", &page("412"));
    server.check(
        "GET /a.txt | Range: bytes=10-",
        "416 | text/plain | Content-Range: bytes */10",
    );
}

#[test]
fn ranges_are_cut_out() {
    let server = Server::new("etag off; add_header X-A a; add_header X-B b always;");
    let whole =
        "200 | text/plain | modified {date} | X-A: a | X-B: b | Accept-Ranges: bytes | 0123456789";
    let part =
        "206 | text/plain | modified {date} | X-A: a | X-B: b | Content-Range: bytes 2-4/10 | 234";
    server.check("GET /a.txt | Range: bytes=2-4", part);
    server.check("GET /a.txt | Range: lines=2-4", whole);
    server.check("GET /a.txt | Range: bytes=2-4 | If-Range: \"x\"", whole);
    server.check(
        "GET /a.txt | Range: bytes=10-",
        "416 | text/html | X-A: a | X-B: b | Content-Range: bytes */10",
    );
    let parts = server.ask("GET /a.txt | Range: bytes=0-0,9-");
    let (head, content) = parts.split_once("\r\n--").expect("a boundary");
    assert!(
        head.starts_with("206 | multipart/byteranges; boundary="),
        "{parts}"
    );
    let first = "\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-0/10\r\n\r\n0\r\n--";
    assert!(content.contains(first), "{parts}");
    let none = Server::new("etag off; max_ranges 0;");
    none.check(
        "GET /a.txt | Range: bytes=2-4",
        "200 | text/plain | modified {date} | 0123456789",
    );
}

#[test]
fn a_line_of_add_header_replaces_what_the_answer_has() {
    let server = Server::new(
        "add_header ETag \"\\\"v1\\\"\"; add_header last-modified today; add_trailer X-T $uri;",
    );
    server.check(
        "GET /a.txt",
        "200 | text/plain | \"v1\" | last-modified: today | Accept-Ranges: bytes | X-T: /a.txt | 0123456789",
    );
}

#[test]
fn a_directory_is_listed() {
    let server = Server::new("autoindex on; autoindex_format json;");
    let date = "Thu, 01 Jan 2026 00:00:00 GMT";
    let listing = format!(
        "[\r\n{{ \"name\":\"other.html\", \"type\":\"file\", \"mtime\":\"{date}\", \"size\":5 }}\r\n]"
    );
    server.world.files().remove("/srv/dir/index.html");
    server.check("GET /dir/", &format!("200 | application/json | {listing}"));
    server.check("POST /dir/", "403 | text/html");
    server.check("GET /nope/", "404 | text/html");
    let page = Server::new("autoindex on; autoindex_localtime on;");
    let answer = page.ask("GET /none/");
    let expected = "200 | text/html | <html>\r\n<head><title>Index of /none/</title></head>\r\n";
    assert!(answer.starts_with(expected), "{answer}");
    page.world.files().write("/srv/none/f", "x");
    let answer = page.ask("GET /none/");
    assert!(
        answer.contains(" 01-Jan-2026 01:00                   1\r\n"),
        "{answer}"
    );
    let call = Server::new("autoindex on; autoindex_format jsonp;");
    let answer = call.ask("GET /none/?callback=f");
    assert_eq!(
        answer,
        "200 | application/javascript | /* callback */\r\nf([\r\n]);"
    );
    call.check("GET /none/?callback=f()", "400 | text/html");
    assert_eq!(
        call.last_error(),
        "info client sent invalid callback name: \"f()\""
    );
}

#[test]
fn a_listing_has_its_bounds() {
    let server = Server::new("location / { autoindex on; autoindex_format json; }");
    let write = |name: u32| {
        let path = format!("/srv/none/{name:06}");
        server.world.files().write(&path, "");
    };
    (0..100_000).for_each(write);
    let count = || server.content_of("GET /none/").matches("\"name\"").count();
    assert_eq!(count(), 100_000);
    assert_eq!(server.last_error(), "");
    write(100_000);
    assert_eq!(count(), 100_000);
    assert_eq!(
        server.last_error(),
        "warn directory \"/srv/none\" has 100001 entries, only the first 100000 are listed"
    );
}

#[test]
fn links_are_refused_where_they_are_disabled() {
    let check = |directives: &str, status: &str| {
        let server = Server::new(directives);
        server.world.files().link("/srv/link.txt", "/srv/a.txt");
        let answer = server.ask("GET /link.txt");
        assert!(answer.starts_with(status), "{directives}: {answer}");
    };
    check("", "200");
    check("disable_symlinks on;", "403");
    check("disable_symlinks on from=/srv/link.txt;", "200");
    check("disable_symlinks on from=$document_root;", "403");
    check("disable_symlinks if_not_owner;", "200");
}

#[test]
fn stub_status_is_for_reading_only() {
    let server = Server::new("location /s { stub_status; }");
    let answer = server.ask("GET /s");
    assert!(
        answer.starts_with("200 | text/plain | Active connections: "),
        "{answer}"
    );
    server.check("POST /s", "405 | text/html");
}
