//! The kernel's tracing: tracepoints, and events added to programs.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Whether a tracepoint exists; else what would help.
pub(super) fn has(system: &str, event: &str) -> Result<(), String> {
    let folder = folder()?;
    if folder.join("events").join(system).join(event).is_dir() {
        return Ok(());
    }
    Err(format!(
        "this kernel has no tracepoint {system}:{event}{}",
        match system {
            "lock" => ": needs Linux 5.19, or CONFIG_LOCK_STAT before",
            "raw_syscalls" => ": needs CONFIG_FTRACE_SYSCALLS",
            _ => "",
        }
    ))
}

/// Where tracefs is mounted, if it may be read.
pub(super) fn folder() -> Result<PathBuf, String> {
    let mounts = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let found = mounts
        .iter()
        .map(Path::new)
        .find(|folder| folder.join("events").is_dir());
    found.map(Path::to_owned).ok_or_else(|| {
        String::from(
            "tracefs can't be read: needs root and `mount -t tracefs tracefs /sys/kernel/tracing`",
        )
    })
}

/// Removes events that were added to programs, by group and name.
pub(super) fn remove(events: &[(String, String)]) -> std::io::Result<()> {
    let Ok(folder) = folder() else {
        return Ok(());
    };
    let mut result = Ok(());
    for (group, event) in events {
        // One write per line: the kernel handles them one by one, and each may be refused (EBUSY) alone.
        let written = OpenOptions::new()
            .append(true)
            .open(folder.join("uprobe_events"))
            .and_then(|mut file| file.write_all(format!("-:{group}/{event}\n").as_bytes()));
        result = result.and(written);
    }
    result
}

/// Removes what labs that have ended left behind: their groups are named after their process.
pub(super) fn remove_leftovers(alive: impl Fn(u32) -> bool) {
    let Ok(folder) = folder() else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("uprobe_events")).unwrap_or_default();
    // What cannot be removed is in use by another program.
    let _ = remove(&leftovers(&text, alive));
}

/// The group of a lab's events.
pub(super) fn group_of(process: u32) -> String {
    format!("{GROUP}{process}")
}

const GROUP: &str = "millstream_";

/// From lines such as `p:millstream_42/malloc_42_0 /usr/lib/libc.so.6:0x98930`.
fn leftovers(text: &str, alive: impl Fn(u32) -> bool) -> Vec<(String, String)> {
    text.lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (group, event) = rest.split_ascii_whitespace().next()?.split_once('/')?;
            let process = group.strip_prefix(GROUP)?.parse().ok()?;
            (!alive(process)).then(|| (group.to_owned(), event.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leftovers_are_events_of_labs_that_have_ended() {
        let text = "p:probe_libc/malloc /lib/libc.so.6:0x98930\n\
                    p:millstream_42/malloc_42_0 /lib/libc.so.6:0x98930\n\
                    r:millstream_43/malloc_43_0 /lib/libc.so.6:0x98930\n\
                    p:millstream_x/malloc /lib/libc.so.6:0x1\nnonsense\n";
        let found = leftovers(text, |process| process == 43);
        let expected = (String::from("millstream_42"), String::from("malloc_42_0"));
        assert_eq!(found, [expected]);
        assert_eq!(group_of(42), "millstream_42");
    }

    #[test]
    fn an_unknown_tracepoint_is_reported_as_missing() {
        assert!(has("no_such_system", "at_all").is_err());
    }
}
