//! A target's corpus, for the ordinary tests that replay it.

use std::path::Path;

/// Runs `check` on every input of the corpus.
#[expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "names the input that fails"
)]
pub(crate) fn replay(target: &str, mut check: impl FnMut(&[u8])) {
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
