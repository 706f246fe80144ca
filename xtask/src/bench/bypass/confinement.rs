//! A server that gets a share of its CPU only: by a control group's limit, or else by somebody who takes the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::setting::Setting;
use crate::bench::child::Child;
use crate::bench::failure::{Failure, Result};

/// Ends with the value: the processes have all of their CPU again.
#[derive(Debug)]
#[expect(dead_code, reason = "what it holds ends when it is dropped")]
pub(super) enum Confinement<'a> {
    Group(Group),
    /// A program that never stops, on the same CPU.
    Competitor(Child<'a>),
}

/// A control group with a limit.
#[derive(Debug)]
pub(super) struct Group {
    folder: PathBuf,
    /// Where its processes go afterwards.
    parent: PathBuf,
}

/// In microseconds: 40 % of a CPU. A limit holds in each of them. The usual 100 ms would stop a server for 60 ms at a
/// time, and its queues would be lost meanwhile.
const PERIOD_US: u32 = 10_000;
const QUOTA_US: u32 = 4000;

/// By which a competitor of nice 0 leaves 655 parts of 1679 (sched(7)): 39 %.
const NICE: &str = "2";

/// Where control groups with CPU limits may be, and how a limit is written there: version 2, version 1.
const PLACES: [(&str, Limit); 3] = [
    ("/sys/fs/cgroup", Limit::Max),
    ("/sys/fs/cgroup/cpu", Limit::Quota),
    ("/sys/fs/cgroup/cpu,cpuacct", Limit::Quota),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// `cpu.max` (cgroup-v2.rst).
    Max,
    /// `cpu.cfs_period_us` and `cpu.cfs_quota_us` (sched-bwc.rst).
    Quota,
}

impl<'a> Confinement<'a> {
    /// Confines processes that run.
    pub(super) fn of(setting: Setting<'a>, pids: &[u32]) -> Result<Self> {
        let found = PLACES
            .into_iter()
            .find_map(|(parent, limit)| Group::make(Path::new(parent), limit).ok());
        if let Some(group) = found {
            group.take(pids)?;
            return Ok(Self::Group(group));
        }
        for pid in pids {
            let mut renice = Command::new("renice");
            renice.args(["-n", NICE, "-p", &pid.to_string()]);
            let status = renice.stdout(Stdio::null()).status();
            if !status.is_ok_and(|status| status.success()) {
                return Err(Failure(format!("renice of process {pid} failed")));
            }
        }
        let cpu = setting.lab.server_cpu.to_string();
        let mut spin = Command::new("taskset");
        spin.args(["-c", &cpu, "sh", "-c", "while :; do :; done"]);
        let output = setting.lab.file("competitor.txt");
        Child::start(&setting.lab.caretaker, &mut spin, &output).map(Self::Competitor)
    }
}

impl Group {
    fn make(parent: &Path, limit: Limit) -> std::io::Result<Self> {
        let folder = parent.join(format!("mill-bypass-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = Self {
            folder,
            parent: parent.to_owned(),
        };
        match limit {
            Limit::Max => group.write("cpu.max", &format!("{QUOTA_US} {PERIOD_US}"))?,
            Limit::Quota => {
                group.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                group.write("cpu.cfs_quota_us", &QUOTA_US.to_string())?;
            }
        }
        Ok(group)
    }

    fn take(&self, pids: &[u32]) -> Result<()> {
        for pid in pids {
            self.write("cgroup.procs", &pid.to_string())
                .map_err(Failure::during(self.folder.display()))?;
        }
        Ok(())
    }

    /// A control group has its files from the beginning.
    fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        use std::io::Write;
        let mut file = fs::OpenOptions::new()
            .write(true)
            .open(self.folder.join(name))?;
        file.write_all(text.as_bytes())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // One with processes can't be removed; those that have ended meanwhile are nowhere.
        let left = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in left.lines() {
            let _ended_already = fs::write(self.parent.join("cgroup.procs"), pid);
        }
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("xtask bench: {} stays: {error}", self.folder.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PERIOD_US, QUOTA_US};

    #[test]
    fn both_ways_leave_about_the_same() {
        let limit = f64::from(QUOTA_US) / f64::from(PERIOD_US);
        let beside_competitor = 655.0 / 1679.0;
        assert!((limit - beside_competitor).abs() < 0.02);
    }
}
