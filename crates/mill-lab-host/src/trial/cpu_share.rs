//! Limits a server to a share of its CPU, by a control group.

use crate::journal::{Entry, Journal};
use crate::monitor::process;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// In microseconds. The limit holds in each period: the usual 100 ms would stop a server for most of that at a time,
/// and its queues would overflow meanwhile.
const PERIOD_US: f64 = 10_000.0;

/// Confines running processes and all their descendants, until the journal undoes it.
pub(super) fn confine(roots: &[u32], share: f64, journal: &mut Journal) -> Result<(), String> {
    let quota = format!("{:.0}", PERIOD_US * share.clamp(0.01, 1.0));
    let period = format!("{PERIOD_US:.0}");
    // cpu.max of version 2 (cgroup-v2.rst); two files in version 1 (sched-bwc.rst).
    let both = format!("{quota} {period}");
    let max = [("cpu.max", both.as_str())];
    let cfs = [
        ("cpu.cfs_period_us", period.as_str()),
        ("cpu.cfs_quota_us", quota.as_str()),
    ];
    let places = [
        ("/sys/fs/cgroup", &max[..]),
        ("/sys/fs/cgroup/cpu", &cfs[..]),
        ("/sys/fs/cgroup/cpu,cpuacct", &cfs[..]),
    ];
    let mut made = places
        .into_iter()
        .filter_map(|(parent, files)| make(Path::new(parent), files, journal).ok());
    let group = made.next();
    let group = group.ok_or("not on this machine: needs control groups with CPU limits")?;
    for process in process::descendants(roots, &process::parents()) {
        let moved = write(&group.join("cgroup.procs"), &process.to_string());
        moved.map_err(|error| format!("{}: {error}", group.display()))?;
    }
    Ok(())
}

/// Makes a control group and writes its limits.
fn make(parent: &Path, files: &[(&str, &str)], journal: &mut Journal) -> io::Result<PathBuf> {
    let group = parent.join(format!("millstream-lab-{}", std::process::id()));
    let path = group.display().to_string();
    let mark = journal.mark();
    journal.act(&Entry::MadeControlGroup { path }, || fs::create_dir(&group))?;
    for (name, text) in files {
        if let Err(error) = write(&group.join(name), text) {
            journal.undo_to(mark);
            return Err(error);
        }
    }
    Ok(group)
}

/// A control group has its files from the beginning.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_in_the_journal_as_long_as_it_exists() {
        let scratch = crate::scratch::Scratch::new("cpu-share");
        let folder = &scratch.0;
        let mut journal = Journal::begin(folder, "run").unwrap();
        // A folder of the test's has no such file, as a kernel without the limit has none.
        make(folder, &[("cpu.max", "4000 10000")], &mut journal).unwrap_err();
        let group = make(folder, &[], &mut journal).unwrap();
        assert!(group.is_dir());
        make(folder, &[], &mut journal).unwrap_err();
        assert!(group.is_dir(), "a group of the same name is not undone");
        assert_eq!(journal.restore(), Vec::<String>::new());
        assert!(!group.exists());
    }
}
