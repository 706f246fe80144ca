//! Programs that the lab may use, their versions, and what cannot be measured without them.

use crate::needs;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) fn distribution() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    String::from(name.unwrap_or("unknown").trim_matches('"'))
}

/// The version of every program that is installed, and of this one.
pub(super) fn versions() -> BTreeMap<String, String> {
    let mut versions: BTreeMap<String, String> = PROGRAMS
        .iter()
        .filter_map(|(name, option)| Some((String::from(*name), version(name, option)?)))
        .collect();
    versions.insert(
        String::from("millstream"),
        String::from(env!("CARGO_PKG_VERSION")),
    );
    versions
}

/// What this machine cannot measure, and why.
pub(super) fn absent() -> BTreeMap<String, String> {
    let mut absent = BTreeMap::new();
    let mut lacks = |what: &str, why: &str| absent.insert(String::from(what), String::from(why));
    for (program, what, package) in FOR {
        if needs::program(program).is_none() {
            lacks(what, &format!("{program} is not installed ({package})"));
        }
    }
    if !Path::new("/sys/bus/event_source/devices/cpu").exists() {
        lacks(
            "hardware counters",
            "the processor or its hypervisor offers none",
        );
    }
    if !Path::new("/dev/kvm").exists() {
        lacks(
            "VM exits",
            "this machine runs no virtual machines: /dev/kvm is absent",
        );
    }
    if !Path::new("/proc/pressure/cpu").exists() {
        lacks("CPU pressure", "the kernel was started without psi=1");
    }
    absent
}

/// The first line with a digit that the program prints for its version option.
fn version(name: &str, option: &str) -> Option<String> {
    let path = needs::program(name)?;
    let output = Command::new(path)
        .arg(option)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text
        .lines()
        .find(|line| line.contains(|c: char| c.is_ascii_digit()))?;
    Some(line.trim().chars().take(VERSION_CHARS_MAX).collect())
}

/// A line of a report.
const VERSION_CHARS_MAX: usize = 80;

const PROGRAMS: [(&str, &str); 10] = [
    ("nginx", "-v"),
    ("wrk", "-v"),
    ("ab", "-V"),
    ("h2load", "--version"),
    ("perf", "--version"),
    ("tcpdump", "--version"),
    ("ethtool", "--version"),
    ("iperf3", "--version"),
    ("ip", "-V"),
    ("onload", "--version"),
];

/// Program, what is unavailable without it, Debian's package.
const FOR: [(&str, &str, &str); 6] = [
    (
        "perf",
        "counters of system calls and malloc, profiles",
        "linux-perf",
    ),
    ("tcpdump", "captures", "tcpdump"),
    (
        "ethtool",
        "tuning of rings, coalescing and offloads",
        "ethtool",
    ),
    ("ip", "namespaces and virtual links", "iproute2"),
    ("tc", "link rates", "iproute2"),
    ("taskset", "pinning", "util-linux"),
];
