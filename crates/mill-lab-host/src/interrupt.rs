//! Ctrl-C. The first one ends the sweep: the trial is dropped, the system restored, the results so far are kept. The
//! second does not wait for the running load, but the system is restored all the same.

use mill_sys::descriptor;
use mill_sys::signal::{Signal, SignalDescriptor};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The user's request to end; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicU32>);

impl Interrupt {
    /// Handles SIGINT, SIGTERM and SIGHUP from now on, on a thread of its own. It must be called before any other
    /// thread is started: threads inherit the mask that blocks these signals. Programs that `Host::command` starts do
    /// not.
    pub fn listen() -> io::Result<Self> {
        let signals =
            SignalDescriptor::open_for(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])?;
        let interrupt = Self::default();
        let told = interrupt.clone();
        std::thread::Builder::new()
            .name(String::from("signals"))
            .spawn(move || told.take(&signals))?;
        Ok(interrupt)
    }

    pub fn ask(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn take(&self, signals: &SignalDescriptor) {
        while descriptor::wait_readable(&[signals.as_fd()], None).is_ok() {
            while let Ok(Some(_)) = signals.read() {
                self.ask();
            }
        }
    }
}
