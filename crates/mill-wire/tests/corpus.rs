//! Replays the fuzz target's corpus: what was once found stays found, without nightly.

#[path = "../../../fuzz/properties/wire.rs"]
mod wire;

use std::path::Path;

#[expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "names the input that fails"
)]
fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut replayed = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // The harness prints this when the check panics.
        println!("{}", path.display());
        check(&std::fs::read(&path).unwrap());
        replayed += 1;
    }
    assert!(replayed > 0, "no corpus in {}", folder.display());
}

#[test]
fn packets_of_the_corpus_hold() {
    replay("wire", wire::check);
}
