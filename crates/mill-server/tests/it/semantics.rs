//! HEAD, conditions, ranges, gzip.

use crate::answer::{Answer, answer, answer_to};
use crate::server::{BIG_BYTES, Server, big};

const CACHES: [&str; 2] = ["", "open_file_cache max=9;"];

fn get(server: &mut Server, path: &str, fields: &str) -> Answer {
    answer(&server.ask(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n")))
}

#[test]
fn head_is_get_without_the_content() {
    for directives in [
        "",
        "open_file_cache max=9;",
        "sendfile off;",
        "gzip on; gzip_min_length 1; gzip_types *;",
        "autoindex on; location /r { return 200 hello; }",
    ] {
        let mut server = Server::new(1, directives);
        server.files().create_directory("/site/dir");
        for path in ["/", "/a.txt", "/big.bin", "/none", "/dir", "/dir/", "/r"] {
            for fields in ["", "Accept-Encoding: gzip\r\n", "Range: bytes=1-3\r\n"] {
                for _ in 0..2 {
                    let get = get(&mut server, path, fields);
                    let request = format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
                    let head = answer_to("HEAD", &server.ask(&request));
                    // As in nginx: the framing of content that is not sent is not announced.
                    let expected = get.head.replace("Transfer-Encoding: chunked\r\n", "");
                    assert_eq!(head.head, expected, "{path} {fields} {directives}");
                }
            }
        }
    }
}

#[test]
fn head_keeps_the_connection_in_order() {
    let mut server = Server::new(1, "open_file_cache max=9;");
    let client = server.connect();
    client.send("HEAD /a.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /b.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    server.run();
    let received = client.received();
    let mut rest = received.as_slice();
    let (head, _) = crate::answer::next("HEAD", &mut rest);
    assert_eq!(head.field("Content-Length"), Some("7"));
    assert_eq!(answer(rest).text(), "file b\n");
}

#[test]
fn a_client_that_has_the_file_gets_304() {
    for cache in CACHES {
        let mut server = Server::new(1, cache);
        let whole = get(&mut server, "/a.txt", "");
        let (etag, modified) = (
            whole.field("ETag").unwrap(),
            whole.field("Last-Modified").unwrap(),
        );
        assert_eq!(modified, "Thu, 01 Jan 2026 00:00:00 GMT");
        let mut check = |fields: &str, status: u16| {
            for _ in 0..2 {
                let answer = get(&mut server, "/a.txt", fields);
                assert_eq!(answer.status, status, "{fields} {cache}");
                if status == 304 {
                    assert_eq!(answer.field("ETag"), Some(etag));
                    assert_eq!(answer.field("Content-Length"), None);
                    assert!(answer.keeps_alive());
                }
            }
        };
        check(&format!("If-None-Match: {etag}\r\n"), 304);
        check(&format!("If-None-Match: \"x\", {etag}\r\n"), 304);
        check(&format!("If-None-Match: W/{etag}\r\n"), 304);
        check("If-None-Match: \"x\"\r\n", 200);
        check(&format!("If-Modified-Since: {modified}\r\n"), 304);
        check("If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT\r\n", 200);
        check(&format!("If-Match: {etag}\r\n"), 200);
        check("If-Match: \"x\"\r\n", 412);
        check(
            "If-Unmodified-Since: Thu, 01 Jan 2015 00:00:00 GMT\r\n",
            412,
        );
        check(&format!("If-Unmodified-Since: {modified}\r\n"), 200);
    }
}

#[test]
fn a_range_is_exactly_its_bytes() {
    for way in ["", "sendfile off;", "open_file_cache max=9;"] {
        let mut server = Server::new(1, way);
        let mut check = |range: &str, status: u16, bytes: std::ops::Range<usize>| {
            let answer = get(&mut server, "/big.bin", &format!("Range: {range}\r\n"));
            assert_eq!(answer.status, status, "{range} {way}");
            if status == 416 {
                assert_eq!(answer.field("Content-Range"), Some("bytes */1048576"));
                return;
            }
            assert!(answer.content == big()[bytes.clone()], "{range} {way}");
            if status == 206 {
                let expected = format!("bytes {}-{}/{BIG_BYTES}", bytes.start, bytes.end - 1);
                assert_eq!(answer.field("Content-Range"), Some(&*expected));
            }
        };
        check("bytes=0-0", 206, 0..1);
        check("bytes=100-199", 206, 100..200);
        check("bytes=-10", 206, BIG_BYTES - 10..BIG_BYTES);
        check("bytes=1000-", 206, 1000..BIG_BYTES);
        check("bytes=0-99999999", 206, 0..BIG_BYTES);
        check("bytes=1048576-", 416, 0..0);
        check("bytes=x", 416, 0..0);
        check("lines=1-2", 200, 0..BIG_BYTES);
    }
}

#[test]
fn several_ranges_come_in_parts() {
    let mut server = Server::new(1, "");
    let answer = get(&mut server, "/big.bin", "Range: bytes=0-9,100-109,-5\r\n");
    assert_eq!(answer.status, 206);
    let content_type = answer.field("Content-Type").unwrap();
    let boundary = content_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let text = answer.text();
    let parts: Vec<&str> = text.split(&format!("\r\n--{boundary}")).collect();
    assert_eq!(parts.len(), 5, "{text}");
    assert_eq!((parts[0], parts[4]), ("", "--\r\n"));
    let big = big();
    for (part, (range, expected)) in parts[1..4].iter().zip([
        (0..10, "bytes 0-9/1048576"),
        (100..110, "bytes 100-109/1048576"),
        (BIG_BYTES - 5..BIG_BYTES, "bytes 1048571-1048575/1048576"),
    ]) {
        let (head, content) = part.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(expected), "{head}");
        assert_eq!(content.as_bytes(), &big[range]);
    }
}

#[test]
fn compressed_content_is_the_same_content() {
    let words: String = (0..20_000)
        .map(|number| format!("word {} ", number % 977))
        .collect();
    for way in [
        "",
        "sendfile off;",
        "open_file_cache max=9;",
        "gzip_comp_level 9;",
    ] {
        let text = format!("gzip on; gzip_types application/octet-stream text/plain; {way}");
        let mut server = Server::new(1, &text);
        server.files().write("/site/words.txt", &words);
        server.files().write("/site/short.txt", "short");
        for _ in 0..2 {
            let zipped = get(&mut server, "/words.txt", "Accept-Encoding: gzip\r\n");
            assert!(zipped.content.len() < words.len() / 3);
            assert!(zipped.unzipped() == words.as_bytes(), "{way}");
            let big_zipped = get(&mut server, "/big.bin", "Accept-Encoding: gzip\r\n");
            assert!(big_zipped.unzipped() == big(), "{way}");
            let plain = get(&mut server, "/words.txt", "");
            assert_eq!(plain.field("Content-Encoding"), None);
            assert!(plain.content == words.as_bytes());
            let refused = get(&mut server, "/words.txt", "Accept-Encoding: gzip;q=0\r\n");
            assert_eq!(refused.field("Content-Encoding"), None);
            let short = get(&mut server, "/short.txt", "Accept-Encoding: gzip\r\n");
            assert_eq!(
                short.field("Content-Encoding"),
                None,
                "below gzip_min_length"
            );
        }
        let old = answer(&server.ask("GET /words.txt HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"));
        assert_eq!(
            old.field("Content-Encoding"),
            None,
            "gzip_http_version is 1.1"
        );
    }
}

#[test]
fn compressed_content_for_http_1_0_ends_with_the_connection() {
    let text = "gzip on; gzip_types *; gzip_http_version 1.0; gzip_min_length 1;";
    let mut server = Server::new(1, text);
    let client = server.connect();
    client.send("GET /a.txt HTTP/1.0\r\nConnection: keep-alive\r\nAccept-Encoding: gzip\r\n\r\n");
    server.run();
    let answer = answer(&client.received());
    assert_eq!(
        (answer.field("Content-Length"), answer.keeps_alive()),
        (None, false)
    );
    assert_eq!(answer.unzipped(), b"file a\n");
    assert!(client.is_closed() && !client.was_reset());
}

#[test]
fn an_empty_file_is_an_empty_answer() {
    for way in [
        "",
        "sendfile off;",
        "open_file_cache max=9;",
        "gzip on; gzip_types *;",
    ] {
        let mut server = Server::new(1, way);
        server.files().write("/site/empty", "");
        for _ in 0..2 {
            let answer = get(&mut server, "/empty", "Accept-Encoding: gzip\r\n");
            assert_eq!((answer.status, answer.content.len()), (200, 0), "{way}");
            assert_eq!(answer.field("Content-Length"), Some("0"), "{way}");
        }
    }
}

#[test]
fn the_head_has_the_fields_of_nginx_in_its_order() {
    let mut server = Server::new(1, "");
    let answer = get(&mut server, "/a.txt", "");
    let expected = "HTTP/1.1 200 OK\r\nServer: millstream/VERSION\r\n\
                    Content-Type: text/plain\r\nContent-Length: 7\r\n\
                    Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nConnection: keep-alive\r\n\
                    ETag: \"6955b900-7\"\r\nAccept-Ranges: bytes\r\n\r\n";
    let expected = expected.replace("VERSION", env!("CARGO_PKG_VERSION"));
    assert_eq!(answer.head_without_date(), expected);
}
