//! Signals read from a descriptor, and blocked from delivery.

use crate::process::{Pid, check};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The signals that the master or the worker process handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    Hangup,
    Interrupt,
    Quit,
    User1,
    User2,
    Terminate,
    Child,
    WindowChange,
    /// Can only be sent, not received.
    Kill,
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub signal: Signal,
    /// The sender; `None` if it was the kernel (for the terminal, for example).
    pub sender: Option<Pid>,
}

/// A descriptor that is readable when one of its signals is pending.
#[derive(Debug)]
pub struct SignalDescriptor(OwnedFd);

impl Signal {
    /// All that can be received.
    pub const ALL: [Self; 8] = [
        Self::Hangup,
        Self::Interrupt,
        Self::Quit,
        Self::User1,
        Self::User2,
        Self::Terminate,
        Self::Child,
        Self::WindowChange,
    ];

    pub fn number(self) -> i32 {
        match self {
            Self::Hangup => libc::SIGHUP,
            Self::Interrupt => libc::SIGINT,
            Self::Quit => libc::SIGQUIT,
            Self::User1 => libc::SIGUSR1,
            Self::User2 => libc::SIGUSR2,
            Self::Terminate => libc::SIGTERM,
            Self::Child => libc::SIGCHLD,
            Self::WindowChange => libc::SIGWINCH,
            Self::Kill => libc::SIGKILL,
        }
    }

    /// The name, as in signal(7).
    pub fn name(self) -> &'static str {
        match self {
            Self::Hangup => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Quit => "SIGQUIT",
            Self::User1 => "SIGUSR1",
            Self::User2 => "SIGUSR2",
            Self::Terminate => "SIGTERM",
            Self::Child => "SIGCHLD",
            Self::WindowChange => "SIGWINCH",
            Self::Kill => "SIGKILL",
        }
    }
}

impl SignalDescriptor {
    /// Blocks [`Signal::ALL`] in the calling thread (threads and processes that it starts inherit that) and opens the
    /// descriptor. Signals that arrived before stay pending; none is lost.
    pub fn open() -> io::Result<Self> {
        Self::open_for(&Signal::ALL)
    }

    /// As [`SignalDescriptor::open`], for these signals alone; all others are delivered.
    pub fn open_for(signals: &[Signal]) -> io::Result<Self> {
        let set = set_of(signals);
        // SAFETY: the set is initialised; the old mask is not asked for.
        let blocked =
            unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()) };
        check(blocked)?;
        // A background process of a shell inherits SIGINT and SIGQUIT as ignored, and an ignored signal does not become
        // pending.
        for signal in signals {
            set_default(*signal)?;
        }
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialised and read only during the call.
        let descriptor = unsafe { libc::signalfd(-1, &raw const set, flags) };
        check(descriptor)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// The next pending signal, if there is one. Never blocks. The kernel merges equal signals.
    pub fn read(&self) -> io::Result<Option<Received>> {
        loop {
            // SAFETY: the structure is plain numbers, for which zero is valid.
            let mut record: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::signalfd_siginfo>();
            // SAFETY: the pointer and size describe `record`, which outlives the call.
            let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut record).cast(), size) };
            if read == -1 {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock => return Ok(None),
                    _ => return Err(error),
                }
            }
            let number = i32::try_from(record.ssi_signo).unwrap_or(0);
            let Some(signal) = Signal::ALL
                .into_iter()
                .find(|known| known.number() == number)
            else {
                continue;
            };
            let sender = i32::try_from(record.ssi_pid).ok().and_then(Pid::new);
            return Ok(Some(Received { signal, sender }));
        }
    }
}

impl AsFd for SignalDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: a sigset_t is plain numbers, for which zero is valid.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a local.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in signals {
        // SAFETY: the set was initialised above; the number is a signal's.
        unsafe { libc::sigaddset(&raw mut set, signal.number()) };
    }
    set
}

fn set_default(signal: Signal) -> io::Result<()> {
    // SAFETY: SIG_DFL is no function of ours that could run in a handler.
    let previous = unsafe { libc::signal(signal.number(), libc::SIG_DFL) };
    if previous == libc::SIG_ERR {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_has_a_number_and_a_name_of_its_own() {
        for (index, signal) in Signal::ALL.into_iter().enumerate() {
            for other in Signal::ALL.into_iter().skip(index + 1) {
                assert_ne!(signal.number(), other.number());
                assert_ne!(signal.name(), other.name());
            }
        }
    }

    #[test]
    fn only_the_signals_asked_for_are_blocked() {
        let thread = std::thread::spawn(|| {
            let _signals = SignalDescriptor::open_for(&[Signal::User1]).unwrap();
            let mut mask = set_of(&[]);
            // SAFETY: the new mask is not given, the old one is written to a local.
            unsafe { libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask) };
            // SAFETY: the set is initialised; the number is a signal's.
            let holds = |signal: Signal| unsafe { libc::sigismember(&mask, signal.number()) };
            Signal::ALL.map(|signal| (signal, holds(signal) == 1))
        });
        for (signal, is_blocked) in thread.join().unwrap() {
            assert_eq!(is_blocked, signal == Signal::User1, "{signal:?}");
        }
    }

    #[test]
    fn a_signal_to_a_thread_is_read_from_the_descriptor() {
        // The mask is per thread, and the signal is sent by tgkill: other tests are not affected.
        let thread = std::thread::spawn(|| {
            let signals = SignalDescriptor::open().unwrap();
            assert_eq!(signals.read().unwrap(), None);
            // SAFETY: raise(3) sends to the calling thread, which has the signal blocked.
            unsafe { libc::raise(libc::SIGUSR1) };
            signals.read().unwrap()
        });
        let received = thread.join().unwrap().unwrap();
        assert_eq!(received.signal, Signal::User1);
        assert_eq!(received.sender, Some(Pid::own()));
    }
}
