//! A generator by its first argument, or by the name of the link that it was called through.

use std::os::unix::fs::symlink;
use std::process::Command;

const MILLSTREAM: &str = env!("CARGO_BIN_EXE_millstream");

/// Everything that a command prints.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_link_and_a_first_argument_mean_the_same() {
    let name = format!("millstream-names-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for (tool, version) in [("wrk", "-v"), ("wrk2", "-v"), ("ab", "-V")] {
        let link = folder.join(tool);
        symlink(MILLSTREAM, &link).unwrap();
        let linked = printed(Command::new(&link).arg(version));
        let argument = printed(Command::new(MILLSTREAM).args([tool, version]));
        assert_eq!(linked, argument, "{tool}");
        assert!(!linked.contains("unknown command"), "{linked}");
        assert!(linked.lines().count() >= 1, "{tool}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_native_command_and_the_responder_have_their_help() {
    let check = |arguments: &[&str], expected: &str| {
        let text = printed(Command::new(MILLSTREAM).args(arguments));
        assert!(text.starts_with(expected), "{text}");
    };
    check(&["load", "--help"], "Usage: millstream load ");
    check(
        &["load", "respond", "--help"],
        "Usage: millstream load respond ",
    );
}
