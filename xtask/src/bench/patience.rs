//! Waiting, with an end: this program measures other processes and has to wait for them.

use std::time::Duration;

use mill_sys::clock;

/// Between two looks; short beside a block, long beside the cost of a look.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Looks until there is something, at most `patience` long.
pub(super) fn wait_for<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
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

#[expect(
    clippy::disallowed_methods,
    reason = "the processes that are measured run meanwhile, there is no event loop here"
)]
pub(super) fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::wait_for;

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
