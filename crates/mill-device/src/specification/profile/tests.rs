//! Profiles by name and from files.

use super::*;
use crate::specification::options;
use mill_stack::polling::Polling;
use mill_tcp::config::Config;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const LEAST: [&str; 3] = [
    "tap:ms0,address=10.77.0.2/24",
    "af_xdp:eth0",
    "memif:@x,role=slave,address=10.77.0.2/24",
];

fn parse(more: &str) -> Specification {
    Specification::parse(&format!("af_xdp:eth0{more}")).unwrap()
}

fn refusal(more: &str) -> String {
    let refused = Specification::parse(&format!("af_xdp:eth0{more}")).unwrap_err();
    refused.to_string()
}

#[test]
fn every_profile_is_good_on_every_device_and_changes_something() {
    for profile in PROFILES {
        for least in LEAST {
            let plain = Specification::parse(least).unwrap();
            let set = Specification::parse(&format!("{least},profile={}", profile.name)).unwrap();
            assert_ne!(format!("{plain:?}"), format!("{set:?}"), "{}", profile.name);
        }
    }
}

#[test]
fn profiles_mean_what_onload_means_by_them() {
    let micros = Duration::from_micros;
    let polling = |name: &str| parse(&format!(",profile={name}")).polling;
    assert_eq!(polling("balanced"), Polling::SleepSpin(micros(50)));
    assert_eq!(polling("performance"), Polling::Spin);
    assert_eq!(polling("latency"), Polling::Adaptive(micros(100_000)));
    assert_eq!(polling("throughput"), Polling::Adaptive(micros(20)));
    assert_eq!(polling("safe"), Polling::Interrupt);
    // Performance is balanced without the sleep.
    let mut balanced = parse(",profile=balanced");
    balanced.polling = Polling::Spin;
    let performance = parse(",profile=performance");
    balanced.origins = performance.origins.clone();
    assert_eq!(format!("{balanced:?}"), format!("{performance:?}"));
    assert_eq!(performance.limits.half_open_max, 1_000_000);
    assert_eq!(performance.tcp.receive_buffer_bytes_max, 16 << 20);
}

#[test]
fn safe_is_what_linux_does_and_says_so() {
    let safe = parse(",profile=safe");
    let expected = Config {
        time_wait_reuse: false,
        mtu_probing: false,
        ..Config::default()
    };
    assert_eq!((safe.tcp, safe.limits), (expected, parse("").limits));
}

#[test]
fn single_options_go_before_profiles_wherever_they_stand() {
    for text in [",profile=throughput,burst=5", ",burst=5,profile=throughput"] {
        let found = parse(text);
        assert_eq!(found.limits.burst_max, 5, "{text}");
        assert_eq!(found.limits.half_open_max, 1_000_000, "{text}");
    }
    let later = |text: &str| parse(text).polling;
    assert_eq!(
        later(",profile=performance,profile=safe"),
        Polling::Interrupt
    );
    assert_eq!(later(",profile=safe,profile=performance"), Polling::Spin);
}

#[test]
fn unknown_profiles_get_an_answer() {
    let check = |more: &str, expected: &str| assert_eq!(refusal(more), expected, "{more}");
    check(
        ",profile=want",
        "\"want\" is no profile, did you mean \"wan\"?",
    );
    check(
        ",profile=frobnicate",
        "\"frobnicate\" is no profile, there are balanced, performance, latency, throughput, wan, safe, \
         and files, whose names have a \"/\" in them",
    );
    let needs =
        "\"profile\" needs a value: a name, as \"wan\", or a file, as \"/etc/mill.profile\"";
    check(",profile", needs);
    check(",profile=", needs);
    let gone = refusal(",profile=/nonexistent/x");
    assert!(
        gone.starts_with("the profile \"/nonexistent/x\" can't be read: No such file"),
        "{gone}"
    );
}

/// A directory of files, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let id = std::process::id();
        let path = std::env::temp_dir().join(format!("mill-profile-{id}-{name}"));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn users_write_their_own() {
    let scratch = Scratch::new("own");
    scratch.with("inner", "profile=wan\nmsl=2s\n");
    let text = "# Ours.\n\n  msl=1s # short\r\npolling=spin,burst=9,\nprofile=./inner\n";
    let path = scratch.with("outer", text);
    let found = parse(&format!(",profile={path},burst=10"));
    assert_eq!(found.tcp.msl, Duration::from_secs(1));
    assert_eq!((found.polling, found.limits.burst_max), (Polling::Spin, 10));
    assert_eq!(found.tcp.receive_buffer_bytes_max, 16 << 20);
    let found = Specification::parse_in("af_xdp:eth0,profile=./inner,pcap=a", &scratch.0).unwrap();
    assert_eq!(found.tcp.msl, Duration::from_secs(2));
    assert_eq!(found.pcap, Some(scratch.0.join("a")));
}

#[test]
fn errors_in_files_have_a_line() {
    let scratch = Scratch::new("errors");
    let check = |text: &str, line: u32, expected: &str| {
        let path = scratch.with("profile", text);
        let found = refusal(&format!(",profile={path}"));
        assert_eq!(found, format!("{path}:{line}: {expected}"), "{text}");
    };
    check(
        "burst=1\n\nbrust=2",
        3,
        "\"brust\" is no option of a stack, did you mean \"burst\"?",
    );
    check("burst=1\nburst=2", 2, "\"burst\" stands twice");
    check(
        "burst=0",
        1,
        "\"burst=0\" means nothing: a number from 1 to 4096 is wanted",
    );
    check("#\nloss=1%", 2, "\"loss\" is no option of af_xdp");
    let circle = scratch.with("circle", "profile=./circle");
    let found = refusal(&format!(",profile={circle}"));
    assert!(
        found.ends_with("profiles name each other, 8 deep and more"),
        "{found}"
    );
    let large = scratch.with("large", &"#".repeat(65_537));
    let found = refusal(&format!(",profile={large}"));
    assert!(found.ends_with("it has more than 65536 bytes"), "{found}");
    let path = scratch.with("fits", &"#".repeat(65_536));
    parse(&format!(",profile={path}"));
}

#[test]
fn help_shows_every_profile_and_its_options() {
    let help = help();
    assert_eq!(help.lines().count(), 2 * PROFILES.len());
    for profile in PROFILES {
        let words = profile.options.split(',');
        for name in words.map(|word| split(word).0) {
            let is_option = options::all().any(|option| option.name == name);
            assert!(is_option || name == PROFILE, "{name}");
        }
    }
}
