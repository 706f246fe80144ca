//! Signals that cannot block, whatever other owners of the descriptor do meanwhile.
//!
//! A write blocks if a peer has made the descriptor blocking and full, which it can do at any moment. The kernel itself
//! does not block: it signals an eventfd when an asynchronous request is complete (io_submit(2)), by adding to the
//! counter as far as that goes. So the request here is one that completes at once: a read of no bytes.

use crate::process::check;
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Signals through the kernel's asynchronous I/O; by a write where that is not available. Dropping it costs nothing,
/// except for the last one of a thread.
#[derive(Debug)]
pub struct Signaller(Option<Context>);

thread_local! {
    /// The context of a former signaller, for the next one: destroying a context takes the kernel tens of milliseconds
    /// (an RCU grace period), in which the worker would stand still.
    static SPARE: Cell<Option<Context>> = const { Cell::new(None) };
}

#[derive(Debug)]
struct Context {
    number: libc::c_ulong,
    /// The file from which no bytes are read.
    source: File,
    /// Completions that were not fetched yet: the kernel keeps a limited number.
    unfetched: usize,
}

impl Signaller {
    /// [`Self::is_bounded`] tells whether it can block.
    pub fn new() -> Self {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        Self(spare.or_else(|| Context::new().ok()))
    }

    /// Whether the kernel signals asynchronously. It may lack such requests, forbid them, or have too many
    /// (fs.aio-max-nr).
    pub const fn is_bounded(&self) -> bool {
        self.0.is_some()
    }

    /// As [`super::signal`], without blocking if [`Self::is_bounded`]. One system call, and a second one every 64
    /// times.
    pub fn signal(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let result = self.0.as_mut().map(|context| context.signal(descriptor));
        match result {
            // The kernel refuses a request for lack of room; here there is always room.
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                super::signal(descriptor)
            }
            Some(result) => result,
            None => super::signal(descriptor),
        }
    }
}

impl Drop for Signaller {
    fn drop(&mut self) {
        // A thread that ends cannot keep it.
        let _ = SPARE.try_with(|spare| spare.set(self.0.take()));
    }
}

impl Default for Signaller {
    fn default() -> Self {
        Self::new()
    }
}

impl Context {
    fn new() -> io::Result<Self> {
        let source = File::open("/dev/null")?;
        let mut number: libc::c_ulong = 0;
        // SAFETY: io_setup writes the context's number, which the pointer is to and which is zero.
        check(unsafe { libc::syscall(libc::SYS_io_setup, EVENTS, &raw mut number) })?;
        Ok(Self {
            number,
            source,
            unfetched: 0,
        })
    }

    fn signal(&mut self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        if self.unfetched == EVENTS {
            self.fetch();
        }
        // SAFETY: an iocb is plain numbers, for which zero is valid: to read no bytes to nowhere.
        let mut request: libc::iocb = unsafe { std::mem::zeroed() };
        request.aio_lio_opcode = READ;
        request.aio_fildes = self.source.as_raw_fd().cast_unsigned();
        request.aio_flags = SIGNALS;
        request.aio_resfd = descriptor.as_raw_fd().cast_unsigned();
        let mut requests = [&raw mut request];
        // SAFETY: the pointer is to one pointer to a request, both of which outlive the call; the kernel keeps neither.
        check(unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.number,
                requests.len(),
                requests.as_mut_ptr(),
            )
        })?;
        self.unfetched += 1;
        Ok(())
    }

    /// Fetches completions, which makes room for more. All requests are complete.
    fn fetch(&mut self) {
        let mut events = [[0_u64; 4]; EVENTS];
        // SAFETY: the pointer is to room for so many events (io_event of aio_abi.h), of four times eight bytes each, which
        // outlives the call; without a time to wait until, and none that have to come, it does not wait.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.number,
                0,
                EVENTS,
                events.as_mut_ptr(),
                std::ptr::null_mut::<libc::timespec>(),
            )
        };
        // If nothing is fetched, the next request may be refused.
        self.unfetched -= usize::try_from(result).unwrap_or(0).min(self.unfetched);
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and no request of it is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.number) };
    }
}

/// Completions between two fetches.
const EVENTS: usize = 64;

/// IOCB_CMD_PREAD and IOCB_FLAG_RESFD of the kernel's aio_abi.h.
const READ: u16 = 0;
const SIGNALS: u32 = 1;

#[cfg(test)]
mod tests {
    use super::super::create;
    use super::*;
    use crate::clock;
    use crate::descriptor::{set_nonblocking, wait_readable};
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    /// The eventfd's count after these signals: their number.
    fn count(event: &File) -> u64 {
        let mut bytes = [0; 8];
        (&*event).read_exact(&mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }

    #[test]
    fn signals_are_counted_however_many_there_are() {
        let event = create().unwrap();
        let file = File::from(event.try_clone().unwrap());
        let mut signaller = Signaller::new();
        for signals in [1, EVENTS, EVENTS + 1, 5 * EVENTS] {
            for _ in 0..signals {
                signaller.signal(event.as_fd()).unwrap();
            }
            assert_eq!(count(&file), signals as u64);
        }
        let none = crate::passing::memory_file(c"none").unwrap();
        assert!(signaller.signal(none.as_fd()).is_err());
        signaller.signal(event.as_fd()).unwrap();
        assert_eq!(count(&file), 1);
    }

    #[test]
    fn the_next_signaller_of_a_thread_reuses_the_context() {
        let number = |signaller: &Signaller| signaller.0.as_ref().map(|context| context.number);
        let first = Signaller::new();
        let had = number(&first);
        let second = Signaller::new();
        assert!(had.is_none() || number(&second) != had);
        drop(first);
        let mut third = Signaller::new();
        assert_eq!(number(&third), had);
        let event = create().unwrap();
        third.signal(event.as_fd()).unwrap();
        assert_eq!(count(&File::from(event)), 1);
    }

    #[test]
    fn one_that_is_full_stays_full() {
        let event = create().unwrap();
        let mut file = File::from(event.try_clone().unwrap());
        file.write_all(&(u64::MAX - 1).to_ne_bytes()).unwrap();
        set_nonblocking(event.as_fd(), false).unwrap();
        let mut signaller = Signaller::new();
        for _ in 0..3 {
            signaller.signal(event.as_fd()).unwrap();
        }
        assert!(wait_readable(&[event.as_fd()], Some(Duration::ZERO)).unwrap()[0]);
    }

    /// Whether a signal ever blocks while the other owner fills the descriptor, at any moment of it.
    fn waits(mut signal: impl FnMut(BorrowedFd<'_>) + Send) -> bool {
        const ROUNDS: u32 = 500;
        let event = create().unwrap();
        let mut file = File::from(event.try_clone().unwrap());
        let signals = AtomicU64::new(0);
        let is_over = AtomicBool::new(false);
        let mut has_waited = false;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    signal(event.as_fd());
                    signals.fetch_add(1, Ordering::Release);
                }
            });
            for _ in 0..ROUNDS {
                // Reading makes room for the next signal.
                let _ = file.read(&mut [0; 8]);
                let is_full = file.write_all(&(u64::MAX - 1).to_ne_bytes()).is_ok();
                set_nonblocking(event.as_fd(), false).unwrap();
                let until = signals.load(Ordering::Acquire) + 2;
                let patience = clock::monotonic() + TIMEOUT;
                while is_full && !has_waited && signals.load(Ordering::Acquire) < until {
                    has_waited = clock::monotonic() > patience;
                    std::thread::yield_now();
                }
                set_nonblocking(event.as_fd(), true).unwrap();
                if has_waited {
                    break;
                }
            }
            is_over.store(true, Ordering::Release);
            // Ends a signaller that is blocked.
            let _ = file.read(&mut [0; 8]);
        });
        has_waited
    }

    /// Longer than other threads can keep a runnable thread from running.
    const TIMEOUT: Duration = Duration::from_secs(3);

    #[test]
    fn a_signal_never_blocks_whenever_the_descriptor_becomes_full() {
        let mut signaller = Signaller::new();
        if !signaller.is_bounded() {
            println!("not tested: the kernel takes no requests (io_setup(2))");
            return;
        }
        assert!(!waits(|event| signaller.signal(event).unwrap()));
    }
}
