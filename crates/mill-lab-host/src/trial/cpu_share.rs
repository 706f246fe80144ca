//! Limits a server to a share of its CPU, by a control group.

use crate::monitor::process;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A control group with a limit. When it is dropped, its processes have their whole CPU again.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    /// The control group that its processes return to.
    parent: PathBuf,
}

/// In microseconds. The limit holds in each period: the usual 100 ms would stop a server for most of that at a time,
/// and its queues would overflow meanwhile.
const PERIOD_US: f64 = 10_000.0;

/// Confines running processes and all their descendants.
pub(super) fn confine(roots: &[u32], share: f64) -> Result<Group, String> {
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
        .filter_map(|(parent, files)| Group::make(Path::new(parent), files).ok());
    let group = made.next();
    let group = group.ok_or("not on this machine: needs control groups with CPU limits")?;
    for process in process::descendants(roots, &process::parents()) {
        let moved = group.write("cgroup.procs", &process.to_string());
        moved.map_err(|error| format!("{}: {error}", group.folder.display()))?;
    }
    Ok(group)
}

impl Group {
    fn make(parent: &Path, files: &[(&str, &str)]) -> io::Result<Self> {
        let folder = parent.join(format!("millstream-lab-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Self {
            folder,
            parent: parent.to_owned(),
        };
        for (name, text) in files {
            group.write(name, text)?;
        }
        Ok(group)
    }

    /// A control group has its files from the beginning.
    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(self.folder.join(name))?;
        file.write_all(text.as_bytes())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group with processes cannot be removed; processes that have ended meanwhile are in no group.
        let left = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for process in left.lines() {
            let _ended_already = fs::write(self.parent.join("cgroup.procs"), process);
        }
        let _is_gone_already = fs::remove_dir(&self.folder);
    }
}
