//! What tests look for in texts.

/// That `part` is in `text`; else both are in the message.
#[track_caller]
pub(crate) fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in {text:?}");
}
