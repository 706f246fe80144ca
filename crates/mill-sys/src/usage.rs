//! The CPU time that threads and processes have used (getrusage(2)).

use crate::process::check;
use std::io;
use std::ops::Sub;
use std::time::Duration;

/// CPU time and context switches. The sum of `user` and `system` is exact; the kernel may estimate its division, from
/// where its clock ticks found the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuUsage {
    pub user: Duration,
    pub system: Duration,
    /// Switches because the thread waited.
    pub voluntary_switches: u64,
    /// Switches by preemption.
    pub involuntary_switches: u64,
}

impl CpuUsage {
    /// Usage of the calling thread since it started. One system call.
    pub fn of_thread() -> io::Result<Self> {
        Self::of(libc::RUSAGE_THREAD)
    }

    /// Usage of all threads of this process, including those that have ended. One system call.
    pub fn of_process() -> io::Result<Self> {
        Self::of(libc::RUSAGE_SELF)
    }

    /// The sum of user and system time.
    pub fn total(&self) -> Duration {
        self.user + self.system
    }

    fn of(scope: libc::c_int) -> io::Result<Self> {
        // SAFETY: a rusage is numbers, for which zero is valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a local that outlives the call.
        check(unsafe { libc::getrusage(scope, &raw mut usage) })?;
        Ok(Self {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            voluntary_switches: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
            involuntary_switches: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
        })
    }
}

impl Sub for CpuUsage {
    type Output = Self;

    /// The usage since `earlier`; no part is negative, though the kernel may correct its estimate in between.
    fn sub(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::epoll::{Epoll, Event};

    /// Works until the thread's CPU clock has advanced by this duration.
    fn work(duration: Duration) {
        let end = clock::thread_cpu() + duration;
        while clock::thread_cpu() < end {}
    }

    #[test]
    fn a_working_thread_uses_what_its_clock_says_and_the_process_no_less() {
        const WORK: Duration = Duration::from_millis(20);
        let thread = std::thread::spawn(|| {
            let (thread, process) = (CpuUsage::of_thread(), CpuUsage::of_process());
            work(WORK);
            (
                CpuUsage::of_thread().unwrap() - thread.unwrap(),
                CpuUsage::of_process().unwrap() - process.unwrap(),
            )
        });
        let (thread, process) = thread.join().unwrap();
        // The kernel truncates each of the four readings to a microsecond.
        let cut = Duration::from_micros(4);
        assert!(thread.total() + cut >= WORK, "{thread:?}");
        assert!(process.total() + cut >= WORK, "{process:?}");
    }

    #[test]
    fn a_thread_that_waits_is_switched_voluntarily() {
        let epoll = Epoll::new().unwrap();
        let before = CpuUsage::of_thread().unwrap();
        let wait = Some(Duration::from_millis(1));
        assert!(epoll.wait(&mut [Event::EMPTY], wait).unwrap().is_empty());
        let used = CpuUsage::of_thread().unwrap() - before;
        assert!(used.voluntary_switches >= 1, "{used:?}");
    }

    #[test]
    fn use_since_an_estimate_that_moved_back_is_zero() {
        let later = CpuUsage {
            user: Duration::from_micros(5),
            system: Duration::from_micros(9),
            ..CpuUsage::default()
        };
        let earlier = CpuUsage {
            user: Duration::from_micros(6),
            system: Duration::from_micros(2),
            ..CpuUsage::default()
        };
        let used = later - earlier;
        assert_eq!(
            (used.user, used.system),
            (Duration::ZERO, Duration::from_micros(7))
        );
        assert_eq!(used.total(), Duration::from_micros(7));
    }
}
