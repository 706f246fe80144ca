//! The fuzzers' corpus, as an ordinary test.
#![forbid(unsafe_code)]

#[path = "../../../fuzz/properties/dns_reply.rs"]
mod dns_reply;

#[path = "../../../fuzz/properties/replay.rs"]
mod replay;

#[test]
fn the_corpus_of_dns_replies_keeps_its_promises() {
    replay::replay("dns_reply", dns_reply::check);
}
