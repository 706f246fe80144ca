//! The fuzzers' corpus, as ordinary tests.
#![forbid(unsafe_code)]

#[path = "../../../fuzz/properties/dns_reply.rs"]
mod dns_reply;

#[path = "../../../fuzz/properties/fastcgi.rs"]
mod fastcgi;

#[path = "../../../fuzz/properties/memcached.rs"]
mod memcached;

#[path = "../../../fuzz/properties/proxy_protocol.rs"]
mod proxy_protocol;

#[path = "../../../fuzz/properties/replay.rs"]
mod replay;

#[test]
fn the_corpus_of_dns_replies_keeps_its_promises() {
    replay::replay("dns_reply", dns_reply::check);
}

#[test]
fn the_corpus_of_fastcgi_answers_keeps_its_promises() {
    replay::replay("fastcgi", fastcgi::check);
}

#[test]
fn the_corpus_of_memcached_answers_keeps_its_promises() {
    replay::replay("memcached", memcached::check);
}

#[test]
fn the_corpus_of_proxy_protocol_headers_keeps_its_promises() {
    replay::replay("proxy_protocol", proxy_protocol::check);
}
