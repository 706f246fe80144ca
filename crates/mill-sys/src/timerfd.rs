//! A timer with a descriptor that is readable after it expires (timerfd_create(2)).

use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A timer of the monotonic clock.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// A timer that is not armed.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: timerfd_create takes numbers.
        let number = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) };
        check(number)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// Arms the timer to expire once, `after` from now; `None` disarms it. Replaces a former setting.
    pub fn set(&self, after: Option<Duration>) -> io::Result<()> {
        // A zero would disarm it.
        let after = after.map_or(Duration::ZERO, |after| after.max(Duration::from_nanos(1)));
        let none = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = libc::itimerspec {
            it_interval: none,
            it_value: libc::timespec {
                tv_sec: libc::time_t::try_from(after.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: libc::c_long::from(after.subsec_nanos()),
            },
        };
        // SAFETY: the pointer is to a value that outlives the call; the old one may be null.
        check(unsafe {
            libc::timerfd_settime(
                self.0.as_raw_fd(),
                0,
                &raw const value,
                std::ptr::null_mut(),
            )
        })
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::wait_readable;

    #[test]
    fn it_is_readable_after_it_expires_and_not_after_it_is_armed_again() {
        let timer = Timer::new().unwrap();
        let ready = |wait| wait_readable(&[timer.as_fd()], wait).unwrap()[0];
        assert!(!ready(Some(Duration::ZERO)));
        timer.set(Some(Duration::ZERO)).unwrap();
        assert!(ready(None));
        timer.set(None).unwrap();
        assert!(!ready(Some(Duration::ZERO)));
    }
}
