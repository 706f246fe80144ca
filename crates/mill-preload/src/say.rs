//! What is said on standard error.

use crate::descriptors::{self, Entry};
use crate::{kernel_options, originals};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use mill_keeper::request::VERBOSE;

static IS_SILENT: AtomicBool = AtomicBool::new(false);

static IS_VERBOSE: AtomicBool = AtomicBool::new(false);

/// At the beginning of the process: whether its user wants to know more.
pub(crate) fn begin() {
    IS_VERBOSE.store(std::env::var_os(VERBOSE).is_some(), Ordering::Relaxed);
}

/// Says a sentence where the user wants to know more.
pub(crate) fn say_more(what: impl FnOnce() -> String) {
    if IS_VERBOSE.load(Ordering::Relaxed) {
        say(&what());
    }
}

/// This process has no standard error any more.
pub(crate) fn be_silent() {
    IS_SILENT.store(true, Ordering::Relaxed);
}

/// Says a sentence, unless standard error is a connection, as in the children of inetd and vsftpd: it is none of their protocol.
pub(crate) fn say(what: &str) {
    if IS_SILENT.load(Ordering::Relaxed) || is_connection(2) {
        return;
    }
    let line = format!("millstream: {what}\n");
    // SAFETY: the bytes live through the call.
    let _ = unsafe { originals::write(2, line.as_ptr().cast(), line.len()) };
}

fn is_connection(descriptor: c_int) -> bool {
    match descriptors::peek(descriptor) {
        Entry::Kernel => kernel_options::is_of_ip(descriptor),
        _ => true,
    }
}
