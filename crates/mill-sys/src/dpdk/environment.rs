//! DPDK's environment (EAL): initialised once in a process, and kept until it ends.

use super::library::{Library, LibraryError, text_at};
use std::ffi::{CString, c_char, c_int};
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

/// The environment is there: the proof that ports can be made.
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    pub(super) library: &'static Library,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvironmentError {
    Library(LibraryError),
    /// `rte_eal_init` has failed; the reason is in the log.
    Refused,
    /// It was initialised before with other arguments, or has failed before.
    Settled,
}

/// The arguments by which it was initialised, once that was tried, and whether it succeeded.
static SETTLED: Mutex<Option<(Vec<String>, bool)>> = Mutex::new(None);

impl Environment {
    /// Initialises it with these arguments of EAL and so much memory, or finds that it has been, with whatever memory. DPDK's words go to
    /// `log` until [`Self::log_to_standard_error`].
    pub fn start(
        arguments: &[String],
        memory_mib: u64,
        log: OwnedFd,
    ) -> Result<Self, EnvironmentError> {
        let mut settled = SETTLED.lock().unwrap_or_else(PoisonError::into_inner);
        let library = Library::get().map_err(EnvironmentError::Library)?;
        let environment = Self { library };
        if let Some((before, has_succeeded)) = &*settled {
            if !has_succeeded || before != arguments {
                return Err(EnvironmentError::Settled);
            }
            environment.log_to(log.into_raw_fd());
            return Ok(environment);
        }
        environment.log_to(log.into_raw_fd());
        let memory = format!("-m{memory_mib}");
        let is_there = environment.initialise(&memory, arguments);
        *settled = Some((arguments.to_vec(), is_there));
        is_there
            .then_some(environment)
            .ok_or(EnvironmentError::Refused)
    }

    fn initialise(self, memory: &str, arguments: &[String]) -> bool {
        let words = [PROGRAM, memory]
            .into_iter()
            .chain(arguments.iter().map(String::as_str));
        let texts = words.filter_map(|word| CString::new(word).ok());
        // Kept for ever: DPDK keeps pointers to some.
        let mut texts: Vec<*mut c_char> = texts.map(CString::into_raw).collect();
        let count = c_int::try_from(texts.len()).unwrap_or_default();
        texts.push(std::ptr::null_mut());
        let texts = texts.leak();
        // SAFETY: an array of so many texts and a null behind them, all of which live for ever.
        let result = unsafe { (self.library.eal_init)(count, texts.as_mut_ptr()) };
        result >= 0
    }

    /// Has DPDK's words go to standard error, as this process has it.
    pub fn log_to_standard_error(self) {
        self.log_to(io::stderr().as_raw_fd());
    }

    /// The descriptor is not closed any more: DPDK may write to it at any time.
    fn log_to(self, descriptor: c_int) {
        // SAFETY: the mode ends with a zero. A descriptor that is none gives null.
        let stream = unsafe { libc::fdopen(descriptor, c"w".as_ptr()) };
        if !stream.is_null() {
            // SAFETY: an open stream, which is never closed.
            unsafe { (self.library.openlog_stream)(stream) };
        }
    }

    /// Its version, as `DPDK 22.11.11`.
    pub fn version(self) -> String {
        // SAFETY: the function returns a text of the library's.
        text_at(unsafe { (self.library.version)() })
    }
}

/// Whether DPDK's libraries are there, and of the ABI that is known.
pub fn check() -> Result<(), LibraryError> {
    Library::get().map(drop)
}

/// The calling thread has a number of DPDK's, until this is dropped by the same thread.
#[derive(Debug)]
pub(super) struct Registered(&'static Library);

impl Registered {
    /// Without one the thread's packets go through no cache, and all else is the same.
    pub(super) fn new(library: &'static Library) -> Option<Self> {
        // SAFETY: the environment is there, and a thread that is registered already is refused.
        let result = unsafe { (library.thread_register)() };
        (result == 0).then_some(Self(library))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: a thread that is not registered is left as it is.
        unsafe { (self.0.thread_unregister)() };
    }
}

impl fmt::Display for EnvironmentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(error) => error.fmt(formatter),
            Self::Refused => formatter.write_str("DPDK's environment (EAL) can't be initialised"),
            Self::Settled => formatter.write_str(
                "DPDK's environment (EAL) was initialised before in this process, and can't be again",
            ),
        }
    }
}

impl std::error::Error for EnvironmentError {}

/// The name of the program, as EAL's log has it.
const PROGRAM: &str = "millstream";
