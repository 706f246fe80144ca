//! The matrix is what the snapshot says.

use mill_simtest::matrix;

#[test]
fn throughput_is_what_the_snapshot_says() {
    let snapshot = include_str!("../../matrix.txt");
    let text = matrix::text();
    assert!(
        text == snapshot,
        "throughput has changed; if that is meant to be, `cargo xtask sim --matrix` writes {} anew. Now:\n{text}",
        matrix::PATH
    );
}
