//! poll(2) and select(2).

use super::events::milliseconds;
use crate::descriptors::{self, Entry};
use crate::held::{Held, StackNumbers};
use crate::memory::{done, places, time_of};
use crate::signals::Handled;
use crate::stack::now;
use crate::waiting::{self, Kernel, Turned, Wait};
use crate::{listening, originals, sets, stacks};
use core::ffi::{c_int, c_short};
use libc::{FD_SETSIZE, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use mill_sockets::errno::Errno;
use mill_sockets::readiness::Readiness;
use mill_sockets::slab::Number;
use mill_tcp::time::Duration;
use smallvec::SmallVec;

/// # Safety
/// As poll(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn poll(
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let polled = unsafe { places(descriptors, usize::try_from(count).unwrap_or(0)) };
    let Some(ours) = ours(polled) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::poll(descriptors, count, timeout_ms) };
    };
    done(wait(polled, &ours, milliseconds(timeout_ms), None))
}

/// # Safety
/// As ppoll(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn ppoll(
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let polled = unsafe { places(descriptors, usize::try_from(count).unwrap_or(0)) };
    let Some(ours) = ours(polled) else {
        // SAFETY: the caller's promise.
        return unsafe { originals::ppoll(descriptors, count, timeout, mask) };
    };
    // SAFETY: the caller's promise.
    let timeout = unsafe { timeout.as_ref() };
    // SAFETY: as above.
    let mask = unsafe { mask.as_ref() };
    match timeout.map(time_of).transpose() {
        Ok(timeout) => done(wait(polled, &ours, timeout, mask)),
        Err(errno) => done(Err(errno)),
    }
}

/// # Safety
/// As poll(2), which compilers call so with the size of the array.
#[unsafe(no_mangle)]
unsafe extern "C" fn __poll_chk(
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout_ms: c_int,
    _size: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { poll(descriptors, count, timeout_ms) }
}

/// # Safety
/// As ppoll(2), which compilers call so with the size of the array.
#[unsafe(no_mangle)]
unsafe extern "C" fn __ppoll_chk(
    descriptors: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    _size: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { ppoll(descriptors, count, timeout, mask) }
}

/// Places that are sockets or sets of the stack.
type Ours = SmallVec<[(usize, Polled); 4]>;

#[derive(Clone, Copy, Debug)]
enum Polled {
    Socket(Number),
    /// An epoll set.
    Set(Number),
}

/// Which places are sockets of the stack; `None` if none is.
fn ours(polled: &[pollfd]) -> Option<Ours> {
    let mut found = Ours::new();
    for (index, one) in polled.iter().enumerate() {
        let number = match descriptors::find(one.fd) {
            Entry::Stream(number) | Entry::Listener(number) => Some(Polled::Socket(number)),
            Entry::Set(number) => {
                let further = stacks::with(number, |_| sets::further(number));
                let further = further.into_iter().flatten();
                found.extend(further.map(|number| (index, Polled::Set(number))));
                Some(Polled::Set(number))
            }
            Entry::Kernel if one.fd >= 0 => listening::of(one.fd).map(Polled::Socket),
            _ => None,
        };
        found.extend(number.map(|number| (index, number)));
    }
    (!found.is_empty()).then_some(found)
}

fn wait(
    polled: &mut [pollfd],
    ours: &[(usize, Polled)],
    timeout: Option<Duration>,
    mask: Option<&sigset_t>,
) -> Result<c_int, Errno> {
    let handled = Handled::by_this_thread();
    // Those of the kernel, listeners among them; a number of the stack is none to poll there.
    let mut kernel: waiting::PollList = polled
        .iter()
        .map(|one| match descriptors::find(one.fd) {
            Entry::Stream(_) => pollfd { fd: -1, ..*one },
            _ => *one,
        })
        .collect();
    kernel.iter_mut().for_each(|one| one.revents = 0);
    let mut stacks = StackNumbers::default();
    for (_, Polled::Socket(number) | Polled::Set(number)) in ours {
        stacks.add(*number);
    }
    let wait = Wait {
        turned: Turned::Stacks(stacks),
        deadline: timeout.map(|timeout| now() + timeout),
        mask,
        handled,
        spins: true,
        is_lazy: false,
        kernel: &mut kernel,
    };
    let found = waiting::until(wait, |held, kernel, known| {
        let count = report(held, polled, ours, kernel);
        if count > 0 && known == Kernel::Unknown {
            // The kernel's have their say too.
            return Some(report(held, polled, ours, &looked_at(kernel)));
        }
        (count > 0).then_some(count)
    })?;
    Ok(found.unwrap_or(0))
}

/// What the kernel's descriptors report now.
fn looked_at(kernel: &[pollfd]) -> waiting::PollList {
    let mut kernel = waiting::PollList::from_slice(kernel);
    if kernel.iter().any(|one| one.fd >= 0) {
        let count = nfds_t::try_from(kernel.len()).unwrap_or(0);
        // SAFETY: the pointer is to a vector of that many.
        unsafe { originals::poll(kernel.as_mut_ptr(), count, 0) };
    }
    kernel
}

/// Stores what there is to report, and says of how many.
fn report(
    held: &mut Held,
    polled: &mut [pollfd],
    ours: &[(usize, Polled)],
    kernel: &[pollfd],
) -> c_int {
    for (one, kernel) in polled.iter_mut().zip(kernel) {
        one.revents = kernel.revents;
    }
    for (index, polled_as) in ours {
        let Some(one) = polled.get_mut(*index) else {
            continue;
        };
        let wanted = Readiness(u32::from(one.events.cast_unsigned())) | Readiness::ALWAYS;
        let (Polled::Socket(number) | Polled::Set(number)) = polled_as;
        let Some(stack) = held.of(*number) else {
            continue;
        };
        let found = match polled_as {
            Polled::Socket(number) => stack.sockets.readiness(*number),
            Polled::Set(number) => Readiness::IN.when(stack.sockets.is_set_ready(*number)),
        };
        let found = found & wanted;
        one.revents |= c_short::try_from(found.0).unwrap_or(0);
    }
    let reported = polled.iter().filter(|one| one.revents != 0).count();
    c_int::try_from(reported).unwrap_or(c_int::MAX)
}

/// # Safety
/// As select(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the caller's promise.
    let sets = unsafe { Sets::of(count, read, write, except) };
    let Some((mut polled, ours)) = sets.ours() else {
        // SAFETY: the caller's promise.
        return unsafe { originals::select(count, read, write, except, timeout) };
    };
    // SAFETY: the caller's promise.
    let time = unsafe { places(timeout, 1) };
    let limit = match time.first().map(limit_of).transpose() {
        Ok(limit) => limit,
        Err(errno) => return done(Err(errno)),
    };
    let began = now();
    let found = wait(&mut polled, &ours, limit, None);
    // Linux says how much of the time is left.
    if let ([time], Some(limit)) = (time, limit) {
        let left = limit.saturating_sub(now().since(began));
        time.tv_sec = i64::try_from(left.as_secs()).unwrap_or(0);
        time.tv_usec = i64::from(left.subsec_micros());
    }
    done(found.and_then(|_| sets.store(&polled)))
}

/// A time of select(2), of any number of microseconds.
fn limit_of(time: &timeval) -> Result<Duration, Errno> {
    let part = |number: i64| u64::try_from(number).map_err(|_| Errno::INVALID);
    Ok(Duration::from_secs(part(time.tv_sec)?) + Duration::from_micros(part(time.tv_usec)?))
}

/// # Safety
/// As pselect(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let sets = unsafe { Sets::of(count, read, write, except) };
    let Some((mut polled, ours)) = sets.ours() else {
        // SAFETY: the caller's promise.
        return unsafe { originals::pselect(count, read, write, except, timeout, mask) };
    };
    // SAFETY: the caller's promise.
    let timeout = unsafe { timeout.as_ref() };
    // SAFETY: as above.
    let mask = unsafe { mask.as_ref() };
    let timeout = timeout.map(time_of).transpose();
    let found = timeout.and_then(|timeout| wait(&mut polled, &ours, timeout, mask));
    done(found.and_then(|_| sets.store(&polled)))
}

/// The three sets of select(2), null where there is none; and how many descriptors are looked at.
struct Sets {
    count: c_int,
    sets: [*mut fd_set; 3],
}

/// What each set asks for, in the order of select(2), and what makes its bit set (`POLLIN_SET` … of fs/select.c).
const ASKED: [(c_short, c_short); 3] = [
    (
        libc::POLLIN,
        libc::POLLIN | libc::POLLHUP | libc::POLLERR | libc::POLLRDNORM,
    ),
    (
        libc::POLLOUT,
        libc::POLLOUT | libc::POLLERR | libc::POLLWRNORM,
    ),
    (libc::POLLPRI, libc::POLLPRI),
];

impl Sets {
    /// # Safety
    /// The pointers are null or to sets that outlive this value.
    unsafe fn of(count: c_int, read: *mut fd_set, write: *mut fd_set, except: *mut fd_set) -> Self {
        let most = c_int::try_from(FD_SETSIZE).unwrap_or(0);
        Self {
            count: count.min(most),
            sets: [read, write, except],
        }
    }

    /// The descriptors that are asked for, and which of them are sockets of the stack; `None` if none is.
    fn ours(&self) -> Option<(Vec<pollfd>, Ours)> {
        let polled: Vec<pollfd> = (0..self.count)
            .filter_map(|fd| {
                let asked = self.sets.iter().zip(ASKED);
                let asked = asked.filter(|(set, _)| self.has(**set, fd));
                let events = asked.fold(0, |events, (_, (bit, _))| events | bit);
                (events != 0).then_some(pollfd {
                    fd,
                    events,
                    revents: 0,
                })
            })
            .collect();
        let ours = ours(&polled)?;
        Some((polled, ours))
    }

    fn has(&self, set: *mut fd_set, fd: c_int) -> bool {
        // SAFETY: not null, to a set that lives; the number is below its size.
        !set.is_null() && unsafe { libc::FD_ISSET(fd, set) }
    }

    /// Leaves what is ready in the sets, and says how many bits that are.
    fn store(&self, polled: &[pollfd]) -> Result<c_int, Errno> {
        if polled.iter().any(|one| one.revents & libc::POLLNVAL != 0) {
            return Err(Errno::BAD_DESCRIPTOR);
        }
        let mut bits = 0;
        for one in polled {
            for (set, (_, meaning)) in self.sets.iter().zip(ASKED) {
                if !self.has(*set, one.fd) {
                    continue;
                }
                if one.revents & meaning != 0 {
                    bits += 1;
                } else {
                    // SAFETY: as in `has`.
                    unsafe { libc::FD_CLR(one.fd, *set) };
                }
            }
        }
        Ok(bits)
    }
}
