//! What is said on standard error.

use crate::originals;

/// Says a sentence.
pub(crate) fn say(what: &str) {
    let line = format!("millstream: {what}\n");
    // SAFETY: the bytes live through the call.
    let _ = unsafe { originals::write(2, line.as_ptr().cast(), line.len()) };
}
