//! Contents of a cache in compressed form: made once, and gone with what they were made of.

use super::{Cached, content, field, with};
use crate::proxy::get;
use std::io::Read as _;

const SITE: &str = "gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any; proxy_cache_key $uri; cache_tags Surrogate-Key;
    location / { proxy_pass http://app; proxy_cache_valid 200 10s; proxy_cache_purge $http_x_purge; }
    location /level { gzip_comp_level 9; proxy_pass http://app; proxy_cache_valid 200 10s; proxy_cache_key /a; }
    location /m { proxy_cache off; gzip off; millstream_metrics; }";

const TYPE: &str = "Content-Type: text/plain\r\n";

/// What the cache said, and the content that came in chunks, as it was compressed.
fn compressed(cached: &mut Cached, path: &str) -> (String, Vec<u8>) {
    let client = cached.server.connect();
    client.send(format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n"
    ));
    cached.server.run();
    let received = client.received();
    let end = received.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let (head, mut rest) = received.split_at(end.expect("a head") + 4);
    let head = String::from_utf8_lossy(head);
    assert_eq!(field(&head, "Content-Encoding"), "gzip", "{head}");
    let mut content = Vec::new();
    loop {
        let end = rest
            .windows(2)
            .position(|bytes| bytes == b"\r\n")
            .expect("a chunk");
        let digits = std::str::from_utf8(&rest[..end]).expect("digits");
        let len = usize::from_str_radix(digits, 16).expect("a length");
        if len == 0 {
            return (field(&head, "X-Cache").to_owned(), content);
        }
        content.extend_from_slice(&rest[end + 2..end + 2 + len]);
        rest = &rest[end + 4 + len..];
    }
}

fn inflated(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes);
    decoder.read_to_string(&mut text).expect("it is compressed");
    text
}

/// What Prometheus gets of the cache under this name.
fn told(cached: &mut Cached, name: &str) -> String {
    let answer = cached.ask(&get("/m"));
    let mut lines = content(&answer).lines();
    let start = format!("millstream_cache_{name}{{zone=\"one\"}} ");
    let value = lines.find_map(|line| line.strip_prefix(&start));
    value.unwrap_or("").to_owned()
}

fn text(number: usize) -> String {
    format!("answer {number} ").repeat(500)
}

#[test]
fn a_content_is_compressed_once_for_all_workers() {
    for workers in [1, 2] {
        let mut cached =
            Cached::with_workers(workers, SITE, |number, _| vec![with(TYPE, &text(number))]);
        assert_eq!(compressed(&mut cached, "/a").0, "MISS");
        let (_, first) = compressed(&mut cached, "/a");
        assert_eq!(inflated(&first), text(0));
        for _ in 0..12 {
            assert_eq!(
                compressed(&mut cached, "/a"),
                ("HIT".to_owned(), first.clone())
            );
        }
        // The answer, and what it is compressed.
        assert_eq!(told(&mut cached, "objects"), "2", "{workers} workers");
        assert_eq!(told(&mut cached, "fills_total"), "2", "{workers} workers");
        // A client that takes it as it is gets it so.
        assert_eq!(content(&cached.ask(&get("/a"))), text(0));
        // Another level is another content.
        let (_, best) = compressed(&mut cached, "/level");
        assert!(best != first && inflated(&best) == text(0));
        assert_eq!(told(&mut cached, "objects"), "3");
    }
}

#[test]
fn a_compressed_content_goes_with_what_it_was_made_of() {
    for way in ["X-Purge: 1\r\n", "X-Purge: 1\r\nSurrogate-Key: t\r\n", ""] {
        let mut cached = Cached::new(SITE, |number, _| {
            vec![with(
                "Content-Type: text/plain\r\nSurrogate-Key: t\r\n",
                &text(number),
            )]
        });
        for _ in 0..4 {
            compressed(&mut cached, "/a");
        }
        match way {
            "" => cached.pass(12),
            way => {
                cached.ask(&format!("PURGE /a HTTP/1.1\r\nHost: a\r\n{way}\r\n"));
                cached.pass(1);
                assert_eq!(told(&mut cached, "objects"), "0", "{way}");
            }
        }
        let (outcome, _) = compressed(&mut cached, "/a");
        assert_ne!(outcome, "HIT");
        for _ in 0..4 {
            let (outcome, content) = compressed(&mut cached, "/a");
            assert_eq!((&*outcome, inflated(&content)), ("HIT", text(1)), "{way}");
        }
        assert_eq!(told(&mut cached, "objects"), "2", "{way}");
    }
}
