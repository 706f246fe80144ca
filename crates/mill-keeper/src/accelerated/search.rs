//! Finding processes that show themselves: by the names of their descriptors. Root finds all, other users their own.

use super::text::one_line;
use super::{Accelerated, sheet};
use crate::launch::LIBRARY;
use core::time::Duration;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;

/// A stack that was found, and its process by the number that it has here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub process: u32,
    pub shown: Accelerated,
}

/// All of this machine that this user may look at: by their `millstream run`, and the oldest first.
pub fn all() -> Vec<Found> {
    let mut found: Vec<Found> = processes().flat_map(of).collect();
    found.sort_by_key(|found| (found.shown.run, found.shown.made_at_ns, found.process));
    found
}

/// The same, once programs that have begun a moment ago have their stacks: a server makes one when it first waits for connections,
/// which may be after the command that started it has returned.
pub fn all_begun() -> Vec<Found> {
    loop {
        let found = all();
        if !processes().any(|process| begins(process, &found)) {
            return found;
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// Whether a process is so young that it, or one that it forks, may be about to make a stack.
fn begins(process: u32, found: &[Found]) -> bool {
    let Some((parent, _)) = origin(process).filter(|(_, age)| *age < BEGINNING) else {
        return false;
    };
    // A master and its other children need none.
    let is_of_its_family = |other: &Found| {
        let others_parent = origin(other.process).map(|(parent, _)| parent);
        let is_sibling = others_parent == Some(parent) && parent > 1;
        other.process == process
            || other.process == parent
            || others_parent == Some(process)
            || is_sibling
    };
    !found.iter().any(is_of_its_family) && has_library(process)
}

/// The parent of a process, and how long ago it was forked (proc_pid_stat(5)).
fn origin(process: u32) -> Option<(u32, Duration)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let forked: u64 = fields.nth(17)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    let age = Duration::from_secs_f64(uptime)
        .checked_sub(Duration::from_millis(forked.checked_mul(TICK_MS)?));
    Some((parent, age.unwrap_or_default()))
}

/// Processes that have the library and no stack: all their connections are the kernel's. Number and name of each.
pub fn on_kernel(accelerated: &[Found]) -> Vec<(u32, String)> {
    let is_other = |process: &u32| !accelerated.iter().any(|found| found.process == *process);
    let each = processes()
        .filter(is_other)
        .filter(|process| has_library(*process));
    let each = each.map(|process| {
        let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        (process, one_line(name.trim_end()))
    });
    let mut each: Vec<_> = each.collect();
    each.sort();
    each
}

fn has_library(process: u32) -> bool {
    let maps = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    maps.split(|byte| *byte == b'\n')
        .any(|line| line.ends_with(LIBRARY.as_bytes()))
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The stacks that a process shows: one, unless its threads have one each.
pub fn of(process: u32) -> Vec<Found> {
    let own = own_number(process);
    let entries = fs::read_dir(format!("/proc/{process}/fd"));
    let target = format!("/memfd:{}", sheet::NAME);
    let shown = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let link = fs::read_link(entry.path()).unwrap_or_default();
        if !link.as_os_str().as_bytes().starts_with(target.as_bytes()) {
            return None;
        }
        let text = File::open(entry.path()).and_then(|file| sheet::read(&file));
        Accelerated::parse(&text.ok()??)
    });
    // A forked process has its parent's as well.
    let own = shown.filter(|shown| Some(shown.process) == own);
    own.map(|shown| Found { process, shown }).collect()
}

/// The number of a process in its own namespace, the last one of /proc/PID/status.
fn own_number(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    match numbers {
        Some(numbers) => numbers.split_whitespace().next_back()?.parse().ok(),
        // Without namespaces of processes in the kernel.
        None => Some(process),
    }
}

/// How long after its fork a program is waited for.
const BEGINNING: Duration = Duration::from_secs(1);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Of /proc: USER_HZ is 100 on x86-64.
const TICK_MS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accelerated::sheet::Sheet;

    #[test]
    fn the_parent_and_the_age_of_a_process_are_read() {
        let (parent, age) = origin(std::process::id()).unwrap();
        assert_eq!(parent, std::os::unix::process::parent_id());
        let (_, of_parent) = origin(parent).unwrap();
        assert!(age <= of_parent, "{age:?} {of_parent:?}");
    }

    /// One test, since all tests of a process share its descriptors.
    #[test]
    fn a_process_is_found_while_it_shows_itself_and_only_under_its_own_number() {
        let own = std::process::id();
        let mut sheet = Sheet::new().unwrap();
        let mut shown = Accelerated {
            process: own + 1,
            program: String::from("test"),
            ..Accelerated::default()
        };
        sheet.write(&shown.emit());
        assert_eq!(of(own), []);
        shown.process = own;
        sheet.write(&shown.emit());
        let expected = Found {
            process: own,
            shown,
        };
        assert_eq!(of(own), std::slice::from_ref(&expected));
        assert!(all().contains(&expected));
        drop(sheet);
        assert_eq!(of(own), []);
    }
}
