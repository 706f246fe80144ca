//! Waiting for other processes, with a limit.

use mill_sys::{clock, descriptor};
use std::time::Duration;

/// Time between two polls; short compared to a trial, long compared to the cost of a poll.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Polls until `look` returns a value, at most `patience` long.
pub(crate) fn wait_for<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = clock::monotonic() + patience;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if clock::monotonic() >= deadline {
            return None;
        }
        pause(LOOK_INTERVAL);
    }
}

/// Sleeps. An error of poll(2) makes the sleep shorter.
pub(crate) fn pause(duration: Duration) {
    let _ = descriptor::wait_readable(&[], Some(duration));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_ends_with_what_is_found_or_with_patience() {
        let mut looks = 0;
        let found = wait_for(Duration::from_secs(60), || {
            looks += 1;
            (looks == 2).then_some(looks)
        });
        assert_eq!(found, Some(2));
        assert_eq!(wait_for(Duration::ZERO, || None::<()>), None);
    }
}
