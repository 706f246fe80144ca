//! epoll(7).

use crate::process::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::time::Duration;

/// An epoll set. A descriptor is removed when its open file is closed.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// Which changes to report. Errors and hang-ups always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    pub readable: bool,
    pub writable: bool,
    /// Report each change once (`EPOLLET`), and a FIN separately.
    pub edge: bool,
    /// Wake one of the sets that share the descriptor (`EPOLLEXCLUSIVE`).
    pub exclusive: bool,
}

/// One report.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Event(libc::epoll_event);

/// Adds one descriptor at a time to a set that another value owns, to end its waits.
#[derive(Debug)]
pub struct Watcher {
    epoll: Epoll,
    token: u64,
}

impl Watcher {
    /// The token of the reports.
    pub fn new(epoll: &Epoll, token: u64) -> io::Result<Self> {
        let epoll = Epoll(epoll.0.try_clone()?);
        Ok(Self { epoll, token })
    }

    /// Another one for the same set.
    pub fn try_clone(&self) -> io::Result<Self> {
        Self::new(&self.epoll, self.token)
    }

    /// Starts to watch a descriptor for input.
    pub fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.epoll.add(descriptor, LEVEL_READABLE, self.token)
    }

    /// Stops watching. Closing the descriptor is not enough if other processes have duplicates.
    pub fn leave(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.epoll.remove(descriptor)
    }
}

const LEVEL_READABLE: Interest = Interest {
    readable: true,
    writable: false,
    edge: false,
    exclusive: false,
};

impl Epoll {
    pub fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1(2) takes no pointer.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        check(descriptor)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Adds a descriptor, whose reports carry `token`.
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

    /// Waits for reports, at most `timeout` (`None`: for ever), and returns them; after a signal there are none. The
    /// timeout is rounded up to a millisecond.
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
        reported(events, count)
    }

    /// As [`Epoll::wait`], with a timeout in nanoseconds (epoll_pwait2, Linux 5.11). The thread's timer slack comes on
    /// top ([`crate::process::set_timer_slack`]). `ENOSYS` from an older kernel, `EPERM` from a sandbox that does not
    /// know the call.
    pub fn wait_exactly<'a>(
        &self,
        events: &'a mut [Event],
        timeout: Option<Duration>,
    ) -> io::Result<&'a [Event]> {
        let timeout = timeout.map(timespec);
        let count = match library_pwait2() {
            Some(call) => {
                let timeout = timeout
                    .as_ref()
                    .map_or(std::ptr::null(), std::ptr::from_ref);
                let length = i32::try_from(events.len()).unwrap_or(i32::MAX);
                let pointer = events.as_mut_ptr().cast();
                // SAFETY: as in `wait`; the timeout is null or a local, there is no signal mask.
                unsafe {
                    call(
                        self.0.as_raw_fd(),
                        pointer,
                        length,
                        timeout,
                        std::ptr::null(),
                    )
                }
            }
            None => system_pwait2(self.0.as_raw_fd(), events, timeout.as_ref()),
        };
        reported(events, count)
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
        check(unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                operation,
                descriptor.as_raw_fd(),
                &raw mut event,
            )
        })
    }
}

/// The reports of a wait.
fn reported(events: &[Event], count: i32) -> io::Result<&[Event]> {
    match usize::try_from(count) {
        Ok(count) => Ok(events.get(..count).unwrap_or_default()),
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(&[]),
            error => Err(error),
        },
    }
}

/// A timeout for epoll_pwait2: exact, or a very long one if it exceeds the type's range.
fn timespec(timeout: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    }
}

/// The C library's epoll_pwait2 (glibc 2.35), which a preloaded library may replace.
type Pwait2 = unsafe extern "C" fn(
    i32,
    *mut libc::epoll_event,
    i32,
    *const libc::timespec,
    *const libc::sigset_t,
) -> i32;

/// The C library's function, if it has one: looked up at run time, so that the program also loads with an older
/// library.
fn library_pwait2() -> Option<Pwait2> {
    static FOUND: OnceLock<Option<Pwait2>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the name is NUL-terminated, RTLD_DEFAULT asks the libraries that are loaded already.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"epoll_pwait2".as_ptr()) };
        // SAFETY: an object pointer as large as a function's; null is `None` (Option of a function is guaranteed so),
        // and what has this name has this signature.
        unsafe { std::mem::transmute::<*mut libc::c_void, Option<Pwait2>>(symbol) }
    })
}

/// The system call itself.
fn system_pwait2(descriptor: RawFd, events: &mut [Event], timeout: Option<&libc::timespec>) -> i32 {
    let length = i32::try_from(events.len()).unwrap_or(i32::MAX);
    let timeout = timeout.map_or(std::ptr::null(), std::ptr::from_ref);
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: Event is a transparent epoll_event; pointer and length describe `events`; the timeout is null or lives
    // through the call; there is no mask, hence no size of one.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            descriptor,
            events.as_mut_ptr(),
            length,
            timeout,
            no_mask,
            0_usize,
        )
    };
    i32::try_from(count).unwrap_or(-1)
}

/// Readable while there are reports, so that it can be added to another set.
impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Interest {
    fn bits(self) -> u32 {
        let flag = |on: bool, bit: i32| if on { bit.cast_unsigned() } else { 0 };
        // EPOLLEXCLUSIVE excludes EPOLLRDHUP, so the FIN is reported separately only with `edge`.
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

    /// A connection that was being opened is established: if it had failed, the report would say so.
    pub fn is_established(self) -> bool {
        self.has(libc::EPOLLOUT) && !self.has(libc::EPOLLHUP | libc::EPOLLERR)
    }

    /// Nothing can be sent or received any more, but for what has been received.
    pub fn hung_up(self) -> bool {
        self.has(libc::EPOLLHUP)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_timeout_reaches_the_kernel_to_the_nanosecond() {
        let check = |timeout, seconds, nanos| {
            let raw = timespec(timeout);
            assert_eq!((raw.tv_sec, raw.tv_nsec), (seconds, nanos));
        };
        check(Duration::ZERO, 0, 0);
        check(Duration::from_micros(300), 0, 300_000);
        check(Duration::new(2, 999_999_999), 2, 999_999_999);
        check(Duration::MAX, i64::MAX, 999_999_999);
    }

    /// The C library's function and the system call behave alike.
    #[test]
    fn exact_waits_report_the_same_events_and_end_without_any() {
        let (near, far) = crate::passing::pair().unwrap();
        let epoll = Epoll::new().unwrap();
        let readable = Interest {
            readable: true,
            writable: false,
            edge: false,
            exclusive: false,
        };
        epoll.add(near.as_fd(), readable, 7).unwrap();
        let mut events = [Event::EMPTY; 4];
        let descriptor = epoll.0.as_raw_fd();
        for timeout in [Duration::ZERO, Duration::from_micros(300)] {
            let reports = epoll.wait_exactly(&mut events, Some(timeout)).unwrap();
            assert!(reports.is_empty());
            let raw = timespec(timeout);
            assert_eq!(system_pwait2(descriptor, &mut events, Some(&raw)), 0);
        }
        crate::passing::send(far.as_fd(), b"x", &[]).unwrap();
        let reports = epoll.wait_exactly(&mut events, None).unwrap();
        assert_eq!(reports.len(), 1);
        assert_eq!(events[0].token(), 7);
        events[0] = Event::EMPTY;
        assert_eq!(system_pwait2(descriptor, &mut events, None), 1);
        assert_eq!(events[0].token(), 7);
    }
}
