//! The CPUs that a thread may run on.

use crate::process::check;
use std::io;

/// The CPUs that the calling thread may run on, ascending.
pub fn allowed_cpus() -> io::Result<Vec<u16>> {
    let mut set = empty();
    // SAFETY: the pointer and size describe `set`; 0 is the calling thread.
    check(unsafe { libc::sched_getaffinity(0, SET_SIZE, &raw mut set) })?;
    // SAFETY: the number is below CPU_SETSIZE, hence inside the set.
    let holds = |cpu: u16| unsafe { libc::CPU_ISSET(usize::from(cpu), &set) };
    Ok((0..CPUS_MAX).filter(|&cpu| holds(cpu)).collect())
}

/// How many processors are online, whichever of them this thread may use; 1 if that is not known.
pub fn online_cpus() -> usize {
    // SAFETY: sysconf(3) takes a number.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// Binds the calling thread to these CPUs; threads that it starts inherit that. CPUs from [`CPUS_MAX`] on are an error.
pub fn bind_to(cpus: &[u16]) -> io::Result<()> {
    let mut set = empty();
    for &cpu in cpus {
        if cpu >= CPUS_MAX {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        // SAFETY: the number is below CPU_SETSIZE, hence inside the set.
        unsafe { libc::CPU_SET(usize::from(cpu), &mut set) };
    }
    // SAFETY: the pointer and size describe `set`; 0 is the calling thread.
    check(unsafe { libc::sched_setaffinity(0, SET_SIZE, &raw const set) })
}

/// The number of CPUs that a set can hold (glibc's CPU_SETSIZE).
pub const CPUS_MAX: u16 = 1024;

const SET_SIZE: usize = size_of::<libc::cpu_set_t>();
const _: () = assert!(SET_SIZE * 8 == CPUS_MAX as usize);

fn empty() -> libc::cpu_set_t {
    // SAFETY: a cpu_set_t is plain bits, for which zero is the empty set.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_bound_to_each_cpu_it_may_run_on() {
        let thread = std::thread::spawn(|| {
            for cpu in allowed_cpus().unwrap() {
                bind_to(&[cpu]).unwrap();
                assert_eq!(allowed_cpus().unwrap(), [cpu]);
            }
        });
        thread.join().unwrap();
    }

    #[test]
    fn no_cpu_and_a_cpu_beyond_the_set_are_errors() {
        assert!(bind_to(&[]).is_err());
        assert!(bind_to(&[CPUS_MAX]).is_err());
    }
}
