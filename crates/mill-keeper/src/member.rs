//! A process that has the device.

use crate::request::TAKEN;
use mill_sys::{descriptor, passing};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) number: u64,
    /// The number of its program.
    pub(crate) program: u64,
    /// Its other end is open as long as the process lives; it does not block.
    channel: OwnedFd,
    /// Its connections, if it has the memory for that.
    pub(crate) ledger: Option<File>,
    /// Connections that were passed to it and that it has not taken yet, and when.
    passed: VecDeque<(Duration, OwnedFd)>,
}

impl Member {
    /// Its number and that of its program are given.
    pub(crate) fn new(
        (number, program): (u64, u64),
        channel: OwnedFd,
        ledger: Option<File>,
    ) -> io::Result<Self> {
        descriptor::set_nonblocking(channel.as_fd(), true)?;
        Ok(Self {
            number,
            program,
            channel,
            ledger,
            passed: VecDeque::new(),
        })
    }

    /// Hears that it has taken what was passed to it, until it says no more; whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        loop {
            match passing::receive(self.as_fd(), &mut [0; TAKEN.len()]) {
                Ok((0, _)) => return true,
                Ok(_) => drop(self.passed.pop_front()),
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
    }

    /// Passes connections to it; `false` if it has not taken what it got before, as one that is stopped.
    pub(crate) fn pass(&mut self, file: &OwnedFd, now: Duration) -> bool {
        let mut passed = self.passed.iter();
        if passed.any(|(at, _)| now.saturating_sub(*at) > TAKING_MAX) {
            return false;
        }
        let Ok(copy) = file.try_clone() else {
            return false;
        };
        let is_sent = passing::send(self.as_fd(), &[1], &[file.as_fd()]).is_ok();
        if is_sent {
            self.passed.push_back((now, copy));
        }
        is_sent
    }

    /// Tells it that connections are kept. One whose messages have no room has others to read.
    pub(crate) fn say_kept(&self) {
        let _ = passing::send(self.as_fd(), &[1], &[]);
    }

    /// What was passed to it and it has not taken, once it has ended.
    pub(crate) fn take_passed(&mut self) -> impl Iterator<Item = OwnedFd> {
        self.passed.drain(..).map(|(_, file)| file)
    }
}

impl AsFd for Member {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// How long a process may leave connections that were passed to it before it gets no more of them.
const TAKING_MAX: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Heard, receive_passed};
    use std::io::Write;

    /// A member, and its process's end.
    fn member() -> (Member, OwnedFd) {
        let (channel, far) = passing::pair().unwrap();
        descriptor::set_nonblocking(far.as_fd(), true).unwrap();
        (Member::new((1, 1), channel, None).unwrap(), far)
    }

    fn connections(text: &str) -> OwnedFd {
        let mut file = passing::memory_file(c"connections").unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.into()
    }

    const BEGIN: Duration = Duration::from_secs(7);

    #[test]
    fn what_is_passed_is_the_processs_once_it_has_taken_it() {
        let (mut member, far) = member();
        for text in ["first", "second"] {
            assert!(member.pass(&connections(text), BEGIN));
        }
        member.say_kept();
        let heard = || receive_passed(far.as_fd()).unwrap();
        assert_eq!(heard(), Some(Heard::Passed(Vec::from("first"))));
        assert!(!member.has_ended());
        assert_eq!(member.passed.len(), 1);
        assert_eq!(heard(), Some(Heard::Passed(Vec::from("second"))));
        assert_eq!(heard(), Some(Heard::Kept));
        assert_eq!(heard(), None);
        drop(far);
        assert!(member.has_ended());
        assert_eq!(member.take_passed().count(), 0);
    }

    #[test]
    fn what_a_process_has_not_taken_before_it_ends_is_there_for_others() {
        let (mut member, far) = member();
        assert!(member.pass(&connections("lost"), BEGIN));
        assert!(!member.has_ended());
        drop(far);
        assert!(member.has_ended());
        assert_eq!(member.take_passed().count(), 1);
        assert!(!member.pass(&connections("late"), BEGIN), "it has ended");
    }

    #[test]
    fn a_process_that_takes_nothing_gets_no_more_until_it_does() {
        let (mut member, far) = member();
        assert!(member.pass(&connections("first"), BEGIN));
        let later = BEGIN + TAKING_MAX + Duration::from_millis(1);
        assert!(member.pass(&connections("second"), BEGIN + TAKING_MAX));
        assert!(!member.pass(&connections("third"), later));
        for _ in 0..2 {
            assert!(receive_passed(far.as_fd()).unwrap().is_some());
        }
        assert!(!member.has_ended());
        assert!(member.pass(&connections("third"), later));
    }
}
