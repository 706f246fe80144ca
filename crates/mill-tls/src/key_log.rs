//! Secrets of handshakes, for programs that look at recorded packets (Wireshark's file of `SSLKEYLOGFILE`).
//!
//! rustls tells a secret in the middle of a handshake, on the worker's thread; the worker takes the lines at the end of its
//! turn and logs them as it logs others.

use std::cell::RefCell;
use std::fmt::Write;
use std::sync::Arc;

thread_local! {
    static LINES: RefCell<Vec<KeyLine>> = const { RefCell::new(Vec::new()) };
}

/// A secret, as a line of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLine {
    /// The file.
    pub path: Arc<[u8]>,
    pub text: String,
}

/// Tells secrets to the thread that shakes hands.
#[derive(Debug)]
pub(crate) struct KeyLog(pub(crate) Arc<[u8]>);

/// The lines of this thread since the last call. Costs no allocation where there are none.
pub fn take() -> Vec<KeyLine> {
    LINES.with(|lines| std::mem::take(&mut *lines.borrow_mut()))
}

impl rustls::KeyLog for KeyLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut text = format!("{label} ");
        push_hex(client_random, &mut text);
        text.push(' ');
        push_hex(secret, &mut text);
        text.push('\n');
        let path = Arc::clone(&self.0);
        LINES.with(|lines| lines.borrow_mut().push(KeyLine { path, text }));
    }
}

fn push_hex(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
}
