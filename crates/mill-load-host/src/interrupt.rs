//! Ctrl-C: the first ends the run and its results are printed, the second ends the process.

use mill_sys::signal::{Signal, SignalDescriptor};
use mill_sys::{clock, descriptor};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The user's request to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupts(Arc<State>);

/// The flags that the threads of one run check.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    interrupts: Interrupts,
    /// The run has ended by itself.
    ended: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct State {
    /// A run has begun: there are results to print.
    begun: AtomicBool,
    asked: AtomicBool,
}

impl Interrupts {
    /// Handles SIGINT and SIGTERM from now on, on a thread of its own. To be called before any other thread is started:
    /// both are blocked, and threads inherit that.
    pub fn listen() -> io::Result<Self> {
        let signals = SignalDescriptor::open_for(&[Signal::Interrupt, Signal::Terminate])?;
        let interrupts = Self::default();
        let listener = interrupts.clone();
        std::thread::Builder::new()
            .name(String::from("signals"))
            .spawn(move || listener.take(&signals))?;
        Ok(interrupts)
    }

    /// Asks the run to stop; the second time, or before the first run, exits the process.
    pub fn ask(&self) {
        let again = self.0.asked.swap(true, Ordering::Relaxed);
        if again || !self.0.begun.load(Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
    }

    pub(crate) fn begin_run(&self) -> Stop {
        self.0.begun.store(true, Ordering::Relaxed);
        Stop {
            interrupts: self.clone(),
            ended: Arc::default(),
        }
    }

    fn take(&self, signals: &SignalDescriptor) {
        let mut last = None;
        while descriptor::wait_readable(&[signals.as_fd()], None).is_ok() {
            while let Ok(Some(_)) = signals.read() {
                let now = clock::monotonic();
                if is_another(last, now) {
                    last = Some(now);
                    self.ask();
                }
            }
        }
    }
}

/// Whether a signal is a request of its own. timeout(1) sends each one twice, to the process and to its group, and so
/// may other programs that stop a group: the second one must not discard the results.
fn is_another(last: Option<Duration>, now: Duration) -> bool {
    last.is_none_or(|last| now.saturating_sub(last) >= SAME_WISH)
}

/// Shorter than a person takes to press Ctrl-C again.
const SAME_WISH: Duration = Duration::from_millis(100);

impl Stop {
    /// Whether threads are to end now. Two loads.
    pub(crate) fn is_asked(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.is_interrupted()
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupts.0.asked.load(Ordering::Relaxed)
    }

    /// Ends all threads of this run.
    pub(crate) fn end_run(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// The exit status of a process that SIGINT ended, as shells write it: 128 and the signal's number.
const INTERRUPTED: i32 = 130;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wish_ends_all_runs_from_then_on() {
        let interrupts = Interrupts::default();
        let first = interrupts.begin_run();
        assert!(!first.is_asked());
        interrupts.ask();
        let second = interrupts.begin_run();
        assert!(first.is_interrupted() && second.is_interrupted());
    }

    #[test]
    fn a_signal_that_comes_twice_at_once_is_one_wish() {
        let at = Duration::from_millis;
        assert!(is_another(None, at(5000)));
        assert!(!is_another(Some(at(5000)), at(5000)));
        assert!(!is_another(Some(at(5000)), at(5099)));
        assert!(is_another(Some(at(5000)), at(5100)));
    }

    #[test]
    fn a_run_that_ends_by_itself_was_not_interrupted() {
        let interrupts = Interrupts::default();
        let (first, second) = (interrupts.begin_run(), interrupts.begin_run());
        first.clone().end_run();
        assert!(first.is_asked() && !first.is_interrupted());
        assert!(!second.is_asked());
    }
}
