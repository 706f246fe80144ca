//! Replays the fuzz targets' corpora without nightly: fixed failures stay fixed.

#[path = "../../../fuzz/properties/cache_fields.rs"]
mod cache_fields;
#[path = "../../../fuzz/properties/cgi_head.rs"]
mod cgi_head;
#[path = "../../../fuzz/properties/chunked_body.rs"]
mod chunked_body;
#[path = "../../../fuzz/properties/h2_answers.rs"]
mod h2_answers;
#[path = "../../../fuzz/properties/h2_connection.rs"]
mod h2_connection;
#[path = "../../../fuzz/properties/hpack.rs"]
mod hpack;
#[path = "../../../fuzz/properties/replay.rs"]
mod replay;
#[path = "../../../fuzz/properties/request_head.rs"]
mod request_head;
#[path = "../../../fuzz/properties/response.rs"]
mod response;

use replay::replay;

#[test]
fn request_heads_of_the_corpus_hold() {
    replay("request_head", request_head::check);
}

#[test]
fn chunked_bodies_of_the_corpus_hold() {
    replay("chunked_body", chunked_body::check);
}

#[test]
fn responses_of_the_corpus_hold() {
    replay("response", response::check);
}

#[test]
fn cgi_heads_of_the_corpus_hold() {
    replay("cgi_head", cgi_head::check);
}

#[test]
fn connections_of_the_corpus_hold() {
    replay("h2_connection", h2_connection::check);
}

#[test]
fn header_blocks_of_the_corpus_hold() {
    replay("hpack", hpack::check);
}

#[test]
fn answers_of_the_corpus_hold() {
    replay("h2_answers", h2_answers::check);
}

#[test]
fn cache_fields_of_the_corpus_hold() {
    replay("cache_fields", cache_fields::check);
}
