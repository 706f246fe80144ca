//! Ctrl-C. The first asks the sweep to end: the trial is dropped, the system restored, what was measured is kept. The second
//! does not wait for the running load, but the system is still restored: what a lab has changed it puts back.

use mill_sys::descriptor;
use mill_sys::signal::{Signal, SignalDescriptor};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The user's wish to end; clones are the same wish.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicU32>);

impl Interrupt {
    /// Takes SIGINT, SIGTERM and SIGHUP from now on, on a thread of its own. To be called before any other thread is started:
    /// they inherit that the signals are blocked. Programs that `Host::command` starts do not.
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
