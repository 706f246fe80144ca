//! `--watch`: repeats the query, and shows rates per second.

use super::arguments::Arguments;
use super::show;
use crate::help;
use mill_server_host::status::client::{self, Found, StatusError};
use mill_status::Status;
use mill_status::text;
use mill_sys::signal::SignalDescriptor;
use mill_sys::terminal::{self, Keys};
use mill_sys::{clock, descriptor};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::Duration;

/// Runs until `q` or Ctrl-C is pressed, or the server is gone.
pub(super) fn run(
    found: &Found,
    arguments: &Arguments,
    interval: Duration,
) -> Result<(), StatusError> {
    let ask = || client::ask(found, &arguments.request(), None);
    // Blocked from here on, so that the screen is restored whatever ends this.
    let signals = SignalDescriptor::open().ok();
    let stdin = io::stdin();
    let keys = Keys::of(stdin.as_fd()).ok();
    let screen = Screen::new();
    let mut before = (clock::monotonic(), ask()?);
    // The first rates come soon.
    let mut wait = interval.min(FIRST);
    loop {
        if is_over(signals.as_ref(), keys.is_some(), wait) {
            return Ok(());
        }
        wait = interval;
        let now = (clock::monotonic(), ask()?);
        let seconds = now.0.saturating_sub(before.0).as_secs_f64();
        let shown = if arguments.json {
            let line = serde_json::to_string(&now.1).unwrap_or_default();
            line + "\n"
        } else {
            page(&before.1, &now.1, seconds, arguments)
        };
        screen.draw(&shown, arguments.json);
        before = now;
    }
}

fn page(before: &Status, now: &Status, seconds: f64, arguments: &Arguments) -> String {
    let mut text = text::rates(before, now, seconds);
    text.push_str(&show::views(now, &arguments.views));
    text
}

/// Waits for a time; returns whether the user wants to end.
fn is_over(signals: Option<&SignalDescriptor>, has_keys: bool, wait: Duration) -> bool {
    let until = clock::monotonic() + wait;
    let stdin = io::stdin();
    loop {
        let left = until.saturating_sub(clock::monotonic());
        let mut sources: Vec<_> = signals.iter().map(|signals| signals.as_fd()).collect();
        if has_keys {
            sources.push(stdin.as_fd());
        }
        let Ok(ready) = descriptor::wait_readable(&sources, Some(left)) else {
            return true;
        };
        let on_signal = signals.is_some() && ready.first() == Some(&true);
        if on_signal && let Some(signals) = signals {
            while let Ok(Some(received)) = signals.read() {
                if ends(received.signal) {
                    return true;
                }
            }
        }
        if has_keys && ready.last() == Some(&true) {
            let mut key = [0; 16];
            match stdin.lock().read(&mut key) {
                Ok(0) | Err(_) => return true,
                Ok(len) if key.iter().take(len).any(|key| b"qQ\x1b".contains(key)) => return true,
                // Any other key updates at once.
                Ok(_) => return false,
            }
        }
        if clock::monotonic() >= until {
            return false;
        }
    }
}

fn ends(signal: mill_sys::signal::Signal) -> bool {
    use mill_sys::signal::Signal;
    matches!(
        signal,
        Signal::Interrupt | Signal::Terminate | Signal::Quit | Signal::Hangup
    )
}

/// The terminal's alternate screen, until this is dropped; or a file, to which the pages are appended.
struct Screen {
    is_terminal: bool,
}

impl Screen {
    fn new() -> Self {
        let is_terminal = io::stdout().is_terminal();
        if is_terminal {
            help::print("\x1b[?1049h\x1b[?25l");
        }
        Self { is_terminal }
    }

    fn draw(&self, text: &str, json: bool) {
        if !self.is_terminal || json {
            let gap = if json { "" } else { "\n" };
            return help::print(&format!("{text}{gap}"));
        }
        let (columns, rows) = terminal::size(io::stdout().as_fd()).unwrap_or((100, 30));
        let mut page = String::from("\x1b[H");
        for line in text.lines().take(usize::from(rows).saturating_sub(1)) {
            page.extend(line.chars().take(usize::from(columns)));
            page.push_str("\x1b[K\r\n");
        }
        page.push_str("q ends\x1b[J");
        help::print(&page);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.is_terminal {
            help::print("\x1b[?25h\x1b[?1049l");
        }
    }
}

/// How long after the start the first rates are shown.
const FIRST: Duration = Duration::from_millis(300);
