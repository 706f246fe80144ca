//! The precision of timeouts: rounded up to a millisecond, exact, or rounded down.

use mill_runtime::time::Duration;
use mill_sys::epoll::{Epoll, Event};
use std::io;

/// How a wait treats a timeout that is not a whole number of milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    /// epoll_wait, at most a millisecond late: the cheapest, where no schedule has to be kept.
    Late,
    /// epoll_pwait2, to the nanosecond.
    Exact,
    /// epoll_wait, at most a millisecond early: the worker finds nothing due and polls again, the last time without
    /// waiting.
    Early,
}

impl Precision {
    pub(super) fn asked(exact: bool) -> Self {
        if exact { Self::Exact } else { Self::Late }
    }

    pub(super) fn wait<'a>(
        self,
        epoll: &Epoll,
        events: &'a mut [Event],
        timeout: Option<Duration>,
    ) -> io::Result<&'a [Event]> {
        match self {
            Self::Late => epoll.wait(events, timeout),
            Self::Exact => epoll.wait_exactly(events, timeout),
            Self::Early => epoll.wait(events, timeout.map(whole_millis)),
        }
    }

    /// The precision after a failed wait. epoll_pwait2 is tried once on a kernel or in a sandbox without it. Any other
    /// failure means that the epoll set is unusable.
    pub(super) fn after(self, error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(ENOSYS | EPERM) if self == Self::Exact => Self::Early,
            _ => self,
        }
    }
}

/// The whole milliseconds of a time.
fn whole_millis(duration: Duration) -> Duration {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(millis)
}

/// Linux's error numbers (asm-generic/errno-base.h, errno.h).
const EPERM: i32 = 1;
const ENOSYS: i32 = 38;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn waits_that_must_not_be_late_are_rounded_down() {
        let check = |micros, expected_ms| {
            let rounded = whole_millis(Duration::from_micros(micros));
            assert_eq!(rounded, Duration::from_millis(expected_ms));
        };
        check(0, 0);
        check(300, 0);
        check(999, 0);
        check(1000, 1);
        check(7_999, 7);
        assert!(whole_millis(Duration::MAX) <= Duration::MAX);
    }

    #[test]
    fn a_kernel_without_exact_waits_is_tried_once() {
        let check = |precision: Precision, code, expected| {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(precision.after(&error), expected);
        };
        for missing in [ENOSYS, EPERM] {
            check(Precision::Exact, missing, Precision::Early);
            check(Precision::Late, missing, Precision::Late);
            check(Precision::Early, missing, Precision::Early);
        }
        let ebadf = 9;
        check(Precision::Exact, ebadf, Precision::Exact);
    }

    #[test]
    fn every_precision_waits_and_reports() {
        for precision in [Precision::Late, Precision::Exact, Precision::Early] {
            let (near, far) = mill_sys::passing::pair().unwrap();
            let epoll = Epoll::new().unwrap();
            epoll
                .add(near.as_fd(), super::super::LEVEL_READABLE, 7)
                .unwrap();
            let mut events = [Event::EMPTY; 2];
            let nothing = precision
                .wait(&epoll, &mut events, Some(Duration::from_micros(300)))
                .unwrap();
            assert!(nothing.is_empty(), "{precision:?}");
            mill_sys::passing::send(far.as_fd(), b"x", &[]).unwrap();
            let reports = precision.wait(&epoll, &mut events, None).unwrap();
            assert_eq!(reports.len(), 1, "{precision:?}");
        }
    }
}
