//! Packet scripts: what RFCs say, segment by segment, replayed in virtual time over IPv4 and IPv6.
//!
//! The folders beside this file are topics; each `.pkt` in them is one script. `parse` says how they are written.

mod flow;
mod ladder;
mod packet;
mod parse;
mod run;
mod script;
mod settings;
mod wire;

use packet::Ends;
use settings::{Family, Settings};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

/// The scripts of a topic, in the order of their names.
fn scripts_of(topic: &str) -> Vec<PathBuf> {
    let folder = root().join(topic);
    let files = std::fs::read_dir(&folder).expect("a topic has a folder");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let mut scripts: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "pkt"))
        .collect();
    scripts.sort();
    scripts
}

/// Replays one script over each IP that it is for; says what went wrong.
fn replay(path: &Path) -> Result<(), String> {
    let script = parse::script(&root(), path)?;
    let family = Settings::new(&script.settings, &Ends::V4)?.family;
    for (ends, excluded) in [(Ends::V4, Family::V6), (Ends::V6, Family::V4)] {
        if family != excluded {
            let version = if ends.is_ipv6() { "IPv6" } else { "IPv4" };
            let replayed = std::panic::catch_unwind(|| run::replay(&script, ends));
            replayed
                .unwrap_or_else(|_| Err("it panicked, see above".into()))
                .map_err(|problem| format!("{version}: {problem}"))?;
        }
    }
    Ok(())
}

/// `MILLSTREAM_SCRIPT=part-of-a-name` replays those scripts only.
fn check(topic: &str) {
    let wanted = std::env::var("MILLSTREAM_SCRIPT").unwrap_or_default();
    let mut failures = Vec::new();
    for path in scripts_of(topic) {
        let name = path
            .strip_prefix(root())
            .unwrap_or(&path)
            .display()
            .to_string();
        if !name.contains(&wanted) {
            continue;
        }
        if let Err(problem) = replay(&path) {
            failures.push(format!("{name}\n  {problem}"));
        }
    }
    let count = failures.len();
    assert!(
        failures.is_empty(),
        "{count} scripts fail:\n\n{}",
        failures.join("\n\n")
    );
}

macro_rules! topics {
    ($($topic:ident)*) => {
        /// Every topic: a folder beside this file, a row in COMPLIANCE.md, a test.
        const TOPICS: &[&str] = &[$(stringify!($topic)),*];

        $(
            #[test]
            fn $topic() {
                check(stringify!($topic));
            }
        )*
    };
}

topics! {
    rfc9293_open
    rfc9293_states
    rfc9293_close
    rfc9293_reset
    rfc9293_urgent
    rfc9293_mss
    rfc9293_window
    rfc9293_nagle
    rfc9293_delayed_ack
    rfc9293_keepalive
    rfc7323_window_scale
    rfc7323_timestamps
    rfc2018_sack
    rfc2883_dsack
    rfc8985_rack_tlp
    rfc6937_prr
    rfc6298_rto
    rfc5681_congestion
    rfc6928_initial_window
    rfc3168_ecn
    rfc9768_accurate_ecn
    rfc5961_blind
    rfc4987_syn_flood
    rfc6191_time_wait
    rfc1191_path_mtu
    rfc5682_frto
    rfc5482_user_timeout
    rfc7413_fast_open
}

/// The folder of scripts that have to fail.
const REFUTED: &str = "refuted";

#[test]
fn every_folder_with_scripts_is_a_topic_with_a_test_and_a_row_in_compliance() {
    let mut folders: Vec<String> = std::fs::read_dir(root())
        .expect("the folder of scripts is there")
        .map(|file| file.expect("the folder can be read"))
        .map(|file| file.file_name().into_string().expect("names are ASCII"))
        .filter(|name| root().join(name).is_dir() && !scripts_of(name).is_empty())
        .filter(|name| name != REFUTED)
        .collect();
    folders.sort();
    let mut topics = TOPICS.to_vec();
    topics.sort_unstable();
    assert_eq!(folders, topics);
    let compliance = root().join("../../../../COMPLIANCE.md");
    let compliance = std::fs::read_to_string(compliance).expect("COMPLIANCE.md is there");
    let (_, table) = compliance
        .split_once("\n## Packet scripts\n")
        .expect("COMPLIANCE.md has a table of packet scripts");
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut named: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    named.sort_unstable();
    assert_eq!(named, topics);
}

#[test]
fn there_are_at_least_two_hundred_scripts() {
    let count: usize = TOPICS.iter().map(|topic| scripts_of(topic).len()).sum();
    assert!(count >= 200, "{count}");
}

/// A script that can't fail proves nothing: one that expects what does not happen has to be found out.
#[test]
fn a_script_that_expects_something_else_fails() {
    for path in scripts_of(REFUTED) {
        assert!(replay(&path).is_err(), "{}", path.display());
    }
}
