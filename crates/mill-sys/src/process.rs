//! Processes: forking, waiting, signalling, and attributes of the own process.

use std::ffi::CStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// A process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(i32);

/// Which side of [`fork`] this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// In the caller, with the child's id.
    Parent(Pid),
    Child,
}

impl Pid {
    /// `None` for zero and negative numbers, which kill(2) takes as process groups.
    pub fn new(number: i32) -> Option<Self> {
        (number > 0).then_some(Self(number))
    }

    /// This process.
    pub fn own() -> Self {
        // SAFETY: getpid(2) takes nothing and cannot fail.
        Self(unsafe { libc::getpid() })
    }

    /// The parent of this process; 1 or a reaper once it has ended.
    pub fn parent() -> Self {
        // SAFETY: getppid(2) takes nothing and cannot fail.
        Self(unsafe { libc::getppid() })
    }

    pub fn number(self) -> i32 {
        self.0
    }

    /// Sends a signal by its number; 0 only checks that the process exists.
    pub fn kill(self, signal: i32) -> io::Result<()> {
        // SAFETY: kill(2) takes no pointer.
        check(unsafe { libc::kill(self.0, signal) })
    }

    /// Sends a signal to the process group that this process leads.
    pub fn kill_group(self, signal: i32) -> io::Result<()> {
        // SAFETY: kill(2) takes no pointer; a negative number is a group's.
        check(unsafe { libc::kill(-self.0, signal) })
    }

    /// A descriptor that is readable once the process has ended: pidfd_open(2). `ESRCH` if it is gone.
    pub fn descriptor(self) -> io::Result<OwnedFd> {
        // SAFETY: the call takes two numbers and no pointer.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, self.0, 0) };
        let number = i32::try_from(descriptor).unwrap_or(-1);
        check(number)?;
        // SAFETY: the kernel has just made this descriptor, and nothing else owns it. It is close-on-exec (pidfd_open(2)).
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    }
}

impl std::fmt::Display for Pid {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Forks, without exec. Refused (`EBUSY`) unless the caller is the only thread: a lock that another thread holds would
/// stay locked in the child for ever.
pub fn fork() -> io::Result<Fork> {
    if thread_count()? != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: this is the only thread (checked above, and no other one could start one meanwhile), so that the
    // child inherits no lock in a locked state.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent(Pid(child))),
    }
}

/// The number of threads of this process, from /proc/self/status.
pub fn thread_count() -> io::Result<u32> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// The id of the calling thread, unique in the system; for the main thread it is the process id.
pub fn thread_id() -> u32 {
    // SAFETY: gettid(2) takes nothing and cannot fail.
    let number = unsafe { libc::gettid() };
    number.unsigned_abs()
}

impl Pid {
    /// Waits until this child has ended, and reaps it.
    pub fn wait(self) -> io::Result<ExitStatus> {
        loop {
            let mut status = 0;
            // SAFETY: the pointer is to a local that outlives the call.
            if unsafe { libc::waitpid(self.0, &raw mut status, 0) } != -1 {
                return Ok(ExitStatus::from_raw(status));
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

/// Reaps one child that has ended; `None` if all others still run or there is none.
pub fn reap() -> io::Result<Option<(Pid, ExitStatus)>> {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a local that outlives the call.
        let child = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if child > 0 {
            return Ok(Some((Pid(child), ExitStatus::from_raw(status))));
        }
        if child == 0 {
            return Ok(None);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(error),
        }
    }
}

/// Becomes the leader of a new session, without a terminal.
pub fn new_session() -> io::Result<()> {
    // SAFETY: setsid(2) takes nothing.
    check(unsafe { libc::setsid() })
}

/// Sets the file mode creation mask.
pub fn set_umask(mask: u32) {
    // SAFETY: umask(2) takes no pointer and cannot fail.
    unsafe { libc::umask(mask) };
}

/// Sets the nice value of the calling thread; threads it starts inherit it.
pub fn set_priority(nice: i32) -> io::Result<()> {
    // SAFETY: setpriority(2) takes no pointer; 0 is the caller.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })
}

/// Lets the calling thread run as soon as it can, before all threads that have no such priority (`SCHED_FIFO`, sched(7)), from 1 to 99.
/// For what has little to do, and has to do it in time: it is not interrupted by others. Threads that it starts inherit it.
pub fn set_real_time(priority: i32) -> io::Result<()> {
    // SAFETY: the parameter is plain numbers, for which zero is valid.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the pointer is to a local; 0 is the caller.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) })
}

/// Drops all capabilities (capabilities(7)) of the calling thread for good, and of threads that it starts. Works
/// without any, too.
pub fn drop_rights() -> io::Result<()> {
    // SAFETY: PR_CAP_AMBIENT_CLEAR_ALL takes zeros.
    check(unsafe {
        libc::prctl(
            libc::PR_CAP_AMBIENT,
            libc::PR_CAP_AMBIENT_CLEAR_ALL,
            0,
            0,
            0,
        )
    })?;
    // struct __user_cap_header_struct: version 3, the caller; then two sets of three words, all of them empty.
    let header = [CAPABILITY_VERSION_3, 0_u32];
    let rights = [0_u32; 6];
    // SAFETY: both live through the call, which reads them; the sizes are those of version 3.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), rights.as_ptr()) })
}

/// _LINUX_CAPABILITY_VERSION_3 of the kernel's capability.h.
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Sets the calling thread's name, which `ps -o comm` and `pidof` show; the kernel keeps 15 bytes.
pub fn set_name(name: &CStr) -> io::Result<()> {
    // SAFETY: the pointer is to a NUL-terminated string that outlives the call.
    check(unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) })
}

/// Sets how late the kernel may wake the calling thread after a timeout, in order to merge wakeups; the default is 50
/// us. At least a nanosecond: 0 would mean the default. epoll(7) adds a thousandth of the timeout. Threads that it
/// starts inherit the value.
pub fn set_timer_slack(slack: Duration) -> io::Result<()> {
    let nanos = libc::c_ulong::try_from(slack.as_nanos()).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: PR_SET_TIMERSLACK takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos.max(1)) })
}

/// Enables core dumps of a process that has given up privileges.
pub fn set_dumpable() -> io::Result<()> {
    // SAFETY: PR_SET_DUMPABLE takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) })
}

/// Replaces the environment of this process. Refused (`EBUSY`) unless the caller is the only thread.
pub fn set_environment(variables: &[(std::ffi::OsString, std::ffi::OsString)]) -> io::Result<()> {
    if thread_count()? != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    let known: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in known {
        // SAFETY: this is the only thread (checked above), so nothing reads the environment meanwhile.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in variables {
        // SAFETY: as above.
        unsafe { std::env::set_var(name, value) };
    }
    Ok(())
}

/// The error of a call that has returned -1.
pub(crate) fn check<N: PartialEq + From<i8>>(result: N) -> io::Result<()> {
    if result == N::from(-1) {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn only_positive_numbers_are_processes() {
        assert_eq!(Pid::new(0), None);
        assert_eq!(Pid::new(-1), None);
        assert_eq!(Pid::new(1).map(Pid::number), Some(1));
    }

    #[test]
    fn a_process_knows_itself_and_may_signal_itself() {
        let own = Pid::own();
        assert_eq!(own.number().unsigned_abs(), std::process::id());
        assert!(own.kill(0).is_ok());
    }

    #[test]
    fn the_descriptor_of_a_process_is_readable_once_it_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::new(i32::try_from(child.id()).unwrap()).unwrap();
        let descriptor = pid.descriptor().unwrap();
        let ended = crate::descriptor::wait_readable(&[descriptor.as_fd()], None).unwrap();
        assert_eq!(ended, [true]);
        assert!(child.wait().unwrap().success());
        assert!(pid.descriptor().is_err());
    }

    #[test]
    fn a_thread_with_the_right_to_it_runs_in_real_time_and_priorities_have_bounds() {
        // A thread of its own, as the priority is per thread.
        let thread = std::thread::spawn(|| {
            for beyond in [0, 100] {
                assert!(set_real_time(beyond).is_err(), "{beyond}");
            }
            if let Err(error) = set_real_time(1) {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                println!("not tested without CAP_SYS_NICE: {error}");
                return;
            }
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let (_, fields) = stat.rsplit_once(") ").unwrap();
            // proc(5): the third field is the first here; 40 is the priority, 41 the policy.
            let fields: Vec<&str> = fields.split(' ').collect();
            assert_eq!((fields[37], fields[38]), ("1", "1"));
        });
        thread.join().unwrap();
    }

    #[test]
    fn capabilities_are_dropped_by_one_thread_and_not_by_the_others() {
        let rights = || {
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let mut lines = status.lines();
            let line = lines.find_map(|line| line.strip_prefix("CapEff:")).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        let before = rights();
        let left = std::thread::spawn(move || {
            drop_rights().unwrap();
            drop_rights().unwrap();
            rights()
        });
        assert_eq!(left.join().unwrap(), 0);
        assert_eq!(rights(), before);
    }

    #[test]
    fn the_timer_slack_is_the_threads_own_and_never_the_default_by_mistake() {
        // SAFETY: PR_GET_TIMERSLACK takes nothing.
        let slack = || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        let before = slack();
        let thread = std::thread::spawn(move || {
            [0, 1, 7000].map(|nanos| {
                set_timer_slack(Duration::from_nanos(nanos)).unwrap();
                slack()
            })
        });
        assert_eq!(thread.join().unwrap(), [1, 1, 7000]);
        assert_eq!(slack(), before);
    }

    #[test]
    fn a_process_with_a_second_thread_does_not_fork() {
        // The test runner's own thread is one more than the main thread.
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || receiver.recv().is_err());
        assert!(thread_count().unwrap() >= 2);
        assert_eq!(fork().unwrap_err().raw_os_error(), Some(libc::EBUSY));
        drop(sender);
        assert!(thread.join().unwrap());
    }
}
