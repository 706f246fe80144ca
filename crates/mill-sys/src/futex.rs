//! Sleep until another thread of this process changes a number: futex(2).

use std::sync::atomic::AtomicU32;

/// Sleeps while the number is `value`, until [`wake_one`]. Returns also for no reason, and at once if the number is another one: the
/// caller looks again. A system call.
pub fn wait(number: &AtomicU32, value: u32) {
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the first pointer is to a number that outlives the call, the last one is null, which futex(2) takes as no timeout.
    unsafe { libc::syscall(libc::SYS_futex, number.as_ptr(), WAIT, value, forever) };
}

/// Wakes one thread that sleeps for this number, if there is one. A system call.
pub fn wake_one(number: &AtomicU32) {
    // SAFETY: the pointer is to a number that outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, number.as_ptr(), WAKE, 1) };
}

/// Between threads of one process, which spares the kernel a look at the mapping.
const WAIT: libc::c_int = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
const WAKE: libc::c_int = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_thread_sleeps_until_the_number_is_another_one() {
        let number = AtomicU32::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while number.load(Ordering::Acquire) == 1 {
                    wait(&number, 1);
                }
            });
            number.store(2, Ordering::Release);
            wake_one(&number);
        });
        wait(&number, 1);
    }
}
