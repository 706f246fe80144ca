//! Replays the fuzz targets' corpora without nightly: fixed failures stay fixed.

#[path = "../../../fuzz/properties/config_lexer.rs"]
mod config_lexer;
#[path = "../../../fuzz/properties/config_load.rs"]
mod config_load;
#[path = "../../../fuzz/properties/replay.rs"]
mod replay;

use replay::replay;

#[test]
fn words_of_the_corpus_hold() {
    replay("config_lexer", config_lexer::check);
}

#[test]
fn configurations_of_the_corpus_hold() {
    replay("config_load", config_load::check);
}
