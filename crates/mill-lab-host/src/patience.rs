//! Waiting, with an end: the lab waits for other processes.

use mill_sys::{clock, descriptor};
use std::time::Duration;

/// Between two looks; short beside a trial, long beside the cost of a look.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Looks until there is something, at most `patience` long.
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

/// Lets time pass. An error of poll(2) means that it passes faster.
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
