//! Processor, memory, interfaces, by /proc and /sys.

use super::line;
use std::fs;
use std::path::Path;

pub(super) fn model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    field(&text, "model name")
        .or_else(|| field(&text, "Model"))
        .unwrap_or_else(|| String::from("unknown"))
}

/// CPUs that are online.
pub(super) fn cores() -> u32 {
    line("/sys/devices/system/cpu/online").map_or(1, |list| count(&list))
}

pub(super) fn nodes() -> u32 {
    line("/sys/devices/system/node/online").map_or(1, |list| count(&list))
}

pub(super) fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = field(&text, "MemTotal").unwrap_or_default();
    let kib: u64 = total
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    kib * 1024
}

/// The hypervisor, if the processor reports one.
pub(super) fn hypervisor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = field(&text, "flags").unwrap_or_default();
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return String::from("none");
    }
    let kind = line("/sys/hypervisor/type").or_else(|| line("/sys/class/dmi/id/sys_vendor"));
    let clock =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    match kind {
        Some(kind) => kind,
        None if clock.is_ok_and(|clocks| clocks.contains("kvm-clock")) => String::from("KVM"),
        None => String::from("one that does not say its name"),
    }
}

/// The kernel's mitigations for flaws of the processor; they make system calls slower.
pub(super) fn mitigations() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let state = line(entry.path())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            (state != "Not affected").then(|| format!("{name}: {state}"))
        })
        .collect();
    found.sort();
    found
}

/// The hard limit: the most that a started process can get.
pub(super) fn open_files_max() -> u64 {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let row = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let hard = row.and_then(|row| row.split_whitespace().nth(1));
    hard.and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Each interface with driver, speed and queues.
pub(super) fn interfaces() -> Vec<String> {
    let Ok(entries) = fs::read_dir("/sys/class/net") else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .map(|entry| interface(&entry.path()))
        .collect();
    found.sort();
    found
}

fn interface(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let driver = fs::read_link(path.join("device/driver")).ok();
    let driver = driver.and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
    let speed = line(path.join("speed"))
        .and_then(|word| word.parse::<i64>().ok())
        .filter(|speed| *speed > 0);
    let queues = |way: &str| {
        let entries = fs::read_dir(path.join("queues"))
            .map(Iterator::flatten)
            .into_iter()
            .flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(way))
            .count()
    };
    let speed = speed.map_or_else(
        || String::from("speed not said"),
        |speed| format!("{speed} Mbit/s"),
    );
    let driver = driver.unwrap_or_else(|| String::from("virtual"));
    format!(
        "{name}: {driver}, {speed}, queues {} in {} out",
        queues("rx-"),
        queues("tx-")
    )
}

/// The value of the first `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| String::from(value.trim()))
    })
}

/// How many CPUs `0-3,8` names.
fn count(list: &str) -> u32 {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?))
    });
    ranges
        .map(|(first, last)| last.saturating_sub(first) + 1)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        for (list, expected) in [("0-1\n", 2), ("0", 1), ("0-3,8,10-11", 7), ("", 0)] {
            assert_eq!(count(list), expected, "{list}");
        }
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 17\nmodel name\t: EPYC: a\n";
        assert_eq!(field(text, "model name").as_deref(), Some("EPYC: a"));
    }
}
