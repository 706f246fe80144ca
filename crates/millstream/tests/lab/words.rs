//! Typing errors: the error and a suggestion.

use std::process::Command;

fn check(words: &[&str], expected: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_millstream"))
        .arg("lab")
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{words:?}");
    for word in expected {
        assert!(said.contains(word), "{words:?} said: {said}");
    }
}

#[test]
fn a_misspelt_word_gets_a_suggestion() {
    let store = std::env::temp_dir().join("millstream-no-such-store");
    let store = store.to_str().unwrap();
    check(&["rnu", "smallest"], &["run"]);
    check(&["run", "smalest", "--store", store], &["smallest"]);
    check(
        &["run", "smallest", "--size", "smok", "--store", store],
        &["smoke"],
    );
    check(
        &[
            "run",
            "smallest",
            "--set",
            "repeat.blokcs=1",
            "--store",
            store,
        ],
        &["blocks"],
    );
    check(
        &["run", "smallest", "--set", "duration", "--store", store],
        &["KEY=VALUE"],
    );
}
