//! epoll(7).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// An epoll set. Descriptors leave it when they are closed.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// Which changes to report. Errors and hang-ups always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    pub readable: bool,
    pub writable: bool,
    /// Report each change once (`EPOLLET`), with the peer's FIN told apart.
    pub edge: bool,
    /// Wake one of the sets that share the descriptor (`EPOLLEXCLUSIVE`).
    pub exclusive: bool,
}

/// One report.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Event(libc::epoll_event);

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1(2) takes no pointer.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor, nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Adds a descriptor, whose reports will carry `token`.
    pub fn add(
        &self,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, descriptor, interest, token)
    }

    pub fn modify(
        &self,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, descriptor, interest, token)
    }

    pub fn remove(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let nothing = Interest {
            readable: false,
            writable: false,
            edge: false,
            exclusive: false,
        };
        self.control(libc::EPOLL_CTL_DEL, descriptor, nothing, 0)
    }

    /// Waits for reports, at most `timeout` (`None`: for ever), and returns those that came. A signal ends the
    /// wait with none. The timeout is rounded up to a millisecond.
    pub fn wait<'a>(
        &self,
        events: &'a mut [Event],
        timeout: Option<Duration>,
    ) -> io::Result<&'a [Event]> {
        let timeout_ms = timeout.map_or(-1, |timeout| {
            i32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        let length = i32::try_from(events.len()).unwrap_or(i32::MAX);
        let pointer = events.as_mut_ptr().cast();
        // SAFETY: Event is a transparent epoll_event; pointer and length describe `events`.
        let count = unsafe { libc::epoll_wait(self.0.as_raw_fd(), pointer, length, timeout_ms) };
        match usize::try_from(count) {
            Ok(count) => Ok(events.get(..count).unwrap_or_default()),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
                error => Err(error),
            },
        }
    }

    fn control(
        &self,
        operation: i32,
        descriptor: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: interest.bits(),
            u64: token,
        };
        // SAFETY: the event lives through the call, which only reads it.
        let result = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                operation,
                descriptor.as_raw_fd(),
                &raw mut event,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

impl Interest {
    fn bits(self) -> u32 {
        let flag = |on: bool, bit: i32| if on { bit.cast_unsigned() } else { 0 };
        // EPOLLEXCLUSIVE excludes EPOLLRDHUP, hence the FIN is told apart only with `edge`.
        flag(self.readable, libc::EPOLLIN)
            | flag(self.writable, libc::EPOLLOUT)
            | flag(self.edge, libc::EPOLLET | libc::EPOLLRDHUP)
            | flag(self.exclusive, libc::EPOLLEXCLUSIVE)
    }
}

impl Event {
    pub const EMPTY: Self = Self(libc::epoll_event { events: 0, u64: 0 });

    pub fn token(self) -> u64 {
        self.0.u64
    }

    /// There is something to read: data, FIN or an error.
    pub fn readable(self) -> bool {
        self.has(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR)
    }

    pub fn writable(self) -> bool {
        self.has(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// The peer has sent FIN or RST.
    pub fn finished(self) -> bool {
        self.has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR)
    }

    fn has(self, bits: i32) -> bool {
        let events = self.0.events;
        events & bits.cast_unsigned() != 0
    }
}

impl std::fmt::Debug for Event {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (events, token) = (self.0.events, self.0.u64);
        write!(
            formatter,
            "Event {{ events: {events:#x}, token: {token:#x} }}"
        )
    }
}
