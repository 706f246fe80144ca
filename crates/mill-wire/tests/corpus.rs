//! Replays the fuzz target's corpus: what was once found stays found, without nightly.

#[path = "../../../fuzz/properties/replay.rs"]
mod replay;
#[path = "../../../fuzz/properties/wire.rs"]
mod wire;

use replay::replay;

#[test]
fn packets_of_the_corpus_hold() {
    replay("wire", wire::check);
}
