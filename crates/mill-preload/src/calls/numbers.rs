//! Descriptors: close(2), dup(2), fcntl(2), ioctl(2).

use crate::descriptors::fresh::{self, Fresh};
use crate::descriptors::{self, Entry, own};
use crate::listening::Left;
use crate::memory::{self, done};
use crate::signals::Handled;
use crate::stack::Stack;
use crate::{borrowing, early, keeper, originals, sets, stacks, waiting};
use core::ffi::{c_int, c_uint, c_ulong};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_sockets::sockets::closing::Lingering;
use mill_tcp::time::Duration;

/// # Safety
/// As close(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn close(fd: c_int) -> c_int {
    match descriptors::peek(fd) {
        Entry::Kernel => {
            sets::note_closed(fd);
            drop(early::take(fd));
        }
        Entry::Private if !stacks::is_inside() => return done(Err(Errno::BAD_DESCRIPTOR)),
        entry => return close_ours(fd, entry),
    }
    // SAFETY: the call takes no pointer.
    unsafe { originals::close(fd) }
}

/// Closes a descriptor that stands for something of ours.
pub(crate) fn close_ours(fd: c_int, entry: Entry) -> c_int {
    let left = Left::of(fd, entry);
    forget(fd, entry);
    // SAFETY: the call takes no pointer.
    let closed = unsafe { originals::close(fd) };
    left.into_iter().for_each(Left::settle);
    closed
}

/// The kernel has just given this number, or says that there is none. Where it still stands for something of ours, the C library has closed
/// it by itself (as fclose(3) of a stream that was made before the connection), and it ends now.
#[inline]
pub(super) fn given(fd: c_int) -> c_int {
    if fd >= 0 && descriptors::peek(fd) != Entry::Kernel {
        end_former(fd);
    }
    fd
}

#[cold]
fn end_former(fd: c_int) {
    // What the library opens in the midst of a call is closed again soon.
    if stacks::is_inside() {
        return;
    }
    let entry = descriptors::peek(fd);
    forget(fd, entry);
    if let Entry::Listener(number) = entry {
        stacks::with(number, |stack| stack.sockets.close(number));
    }
}

/// The descriptor stands for nothing of ours any more. Of a listener [`Left`] does the rest.
fn forget(fd: c_int, entry: Entry) {
    if entry == Entry::Kernel {
        return;
    }
    descriptors::set(fd, Entry::Kernel);
    match entry {
        Entry::Stream(number) => {
            let lingering = stacks::with(number, |stack| stack.sockets.close(number));
            if let Some(lingering) = lingering.flatten() {
                linger(number, lingering);
            }
        }
        // The last of its duplicates.
        Entry::Set(number) if descriptors::all().all(|(_, other)| other != entry) => {
            sets::remove(number);
        }
        Entry::Listener(_) | Entry::Set(_) | Entry::Kernel => {}
        Entry::Inherited(number) => borrowing::release(number),
        Entry::Lost | Entry::Private | Entry::Fresh(_) | Entry::Borrowed(_) => {}
    }
}

/// Waits until the peer has acknowledged what it was sent, a signal comes, or the time is over (`SO_LINGER`).
fn linger(number: Number, closed: Lingering) {
    let limit = Duration::from_secs(closed.seconds.into());
    // What is left then goes on by itself.
    let handled = Handled::by_this_thread();
    let _ = waiting::of_call(number, Some(limit), handled, |stack| {
        (!stack.sockets.is_lingering(closed)).then_some(())
    });
}

/// # Safety
/// As close_range(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // What the kernel refuses closes nothing, and neither does a flag to be set.
    let is_refused = first > last || flags & !CLOSE_RANGE_UNSHARE != 0;
    if is_refused {
        // SAFETY: the call takes no pointer.
        let result = unsafe { originals::close_range(first, last, flags) };
        if result == 0 {
            keeper::stay_open();
        }
        return result;
    }
    let number = |number: c_uint| c_int::try_from(number).unwrap_or(c_int::MAX);
    let range = number(first)..=number(last);
    let mut from = first;
    for (fd, entry) in descriptors::all().filter(|(fd, _)| range.contains(fd)) {
        if entry != Entry::Private {
            close_ours(fd, entry);
            continue;
        }
        let own = fd.unsigned_abs();
        if own > from {
            // SAFETY: the call takes no pointer.
            unsafe { originals::close_range(from, own - 1, flags) };
        }
        from = own + 1;
    }
    if from > last {
        return 0;
    }
    // SAFETY: the call takes no pointer.
    unsafe { originals::close_range(from, last, flags) }
}

/// # Safety
/// As closefrom(3).
#[unsafe(no_mangle)]
unsafe extern "C" fn closefrom(first: c_int) {
    // SAFETY: the call takes no pointer.
    unsafe { close_range(first.max(0).unsigned_abs(), c_uint::MAX, 0) };
}

/// The process has a table of descriptors of its own first (`linux/close_range.h`).
const CLOSE_RANGE_UNSHARE: c_int = 2;

/// # Safety
/// As dup(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup(fd: c_int) -> c_int {
    // SAFETY: the call takes no pointer.
    also(fd, || unsafe { originals::dup(fd) })
}

/// # Safety
/// As dup2(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    if fd == to {
        // SAFETY: the call takes no pointer.
        return unsafe { originals::dup2(fd, to) };
    }
    // SAFETY: the call takes no pointer.
    replace(fd, to, || unsafe { originals::dup2(fd, to) })
}

/// # Safety
/// As dup3(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if fd == to {
        return done(Err(Errno::INVALID));
    }
    // SAFETY: the call takes no pointer.
    replace(fd, to, || unsafe { originals::dup3(fd, to, flags) })
}

fn replace(fd: c_int, to: c_int, duplicate: impl FnOnce() -> c_int) -> c_int {
    let replaced = descriptors::peek(to);
    if replaced == Entry::Private && !stacks::is_inside() {
        // The program believes the number to be free, and it cannot be made so.
        return done(Err(Errno::BUSY));
    }
    also(fd, || {
        let left = Left::of(to, replaced);
        let made = duplicate();
        if made != -1 {
            early::take(to);
            forget(to, replaced);
            left.into_iter().for_each(Left::settle);
        }
        made
    })
}

/// A duplicate stands for what its original does.
fn also(fd: c_int, duplicate: impl FnOnce() -> c_int) -> c_int {
    let entry = descriptors::find(fd);
    let made = given(duplicate());
    if made == -1 {
        return made;
    }
    if let Entry::Stream(number) | Entry::Listener(number) = entry {
        let counted = stacks::on(number, |stack| stack.sockets.duplicate(number));
        if counted.is_err() {
            return made;
        }
    }
    match entry {
        Entry::Kernel => sets::note_duplicate(fd, made),
        Entry::Private => {}
        entry => {
            descriptors::set(made, entry);
        }
    }
    made
}

/// The third argument of fcntl(2) is a number or a pointer, if there is one.
///
/// # Safety
/// As fcntl(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller's promise.
    let original = || unsafe { originals::fcntl(fd, command, argument) };
    let flags = c_int::try_from(argument & 0xffff_ffff).unwrap_or(0);
    if let Entry::Fresh(fresh) = descriptors::peek(fd) {
        match command {
            libc::F_GETFD | libc::F_SETFD => return original(),
            libc::F_GETFL => return status_flags(fresh.waits),
            libc::F_SETFL if flags & !(libc::O_NONBLOCK | libc::O_ACCMODE) == 0 => {
                let waits = flags & libc::O_NONBLOCK == 0;
                if fresh::change(fd, fresh, Fresh { waits, ..fresh }) {
                    return 0;
                }
            }
            _ => {}
        }
    }
    let is_of_number = matches!(command, libc::F_GETFD | libc::F_SETFD);
    if is_of_number && matches!(descriptors::peek(fd), Entry::Inherited(_)) {
        return original();
    }
    match (descriptors::find(fd), command) {
        (Entry::Kernel | Entry::Private, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => {
            let made = own::note(given(original()));
            if made != -1 && !own::is_making() {
                sets::note_duplicate(fd, made);
            }
            made
        }
        // Programs that start others have all numbers closed by that which they do not know, the keeper's too.
        (Entry::Private, libc::F_SETFD) if !stacks::is_inside() && !own::is_making() => 0,
        (Entry::Kernel | Entry::Private, _) => original(),
        (_, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) => also(fd, original),
        (Entry::Stream(number), libc::F_GETFL) => done(stacks::on(number, |stack| {
            Ok(status_flags(stack.sockets.options(number)?.waits))
        })),
        (Entry::Stream(number), libc::F_SETFL) => {
            done(set_waits(number, flags & libc::O_NONBLOCK == 0))
        }
        _ => original(),
    }
}

/// The flags that F_GETFL returns of a socket.
const fn status_flags(waits: bool) -> c_int {
    match waits {
        true => libc::O_RDWR,
        false => libc::O_RDWR | libc::O_NONBLOCK,
    }
}

/// # Safety
/// As fcntl(2): off_t has 64 bits here.
#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { fcntl(fd, command, argument) }
}

fn set_waits(number: Number, waits: bool) -> Result<c_int, Errno> {
    stacks::on(number, |stack| stack.sockets.set_waits(number, waits)).map(|()| 0)
}

/// # Safety
/// As ioctl(2).
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: usize) -> c_int {
    let place = core::ptr::with_exposed_provenance_mut::<c_int>(argument);
    if let Entry::Fresh(fresh) = descriptors::peek(fd)
        && request == libc::FIONBIO
        // SAFETY: the caller's promise.
        && let Some(on) = unsafe { memory::number(place) }
        && fresh::change(fd, fresh, Fresh { waits: on == 0, ..fresh })
    {
        return 0;
    }
    let number = match descriptors::find(fd) {
        Entry::Stream(number) => number,
        // As F_SETFD.
        Entry::Private if request == libc::FIOCLEX && !stacks::is_inside() => return 0,
        // SAFETY: the caller's promise.
        _ => return unsafe { originals::ioctl(fd, request, argument) },
    };
    let counted: fn(&Stack, Number) -> Result<u64, Errno> = match request {
        libc::FIONBIO => {
            // SAFETY: the caller's promise.
            let on = unsafe { memory::number(place) };
            let on = on.ok_or(Errno::FAULT);
            return done(on.and_then(|on| set_waits(number, on == 0)));
        }
        libc::FIONREAD => |stack, number| Ok(stack.sockets.unread(number)? as u64),
        libc::TIOCOUTQ => |stack, number| stack.sockets.unacknowledged(number),
        // SAFETY: the caller's promise. The placeholder answers as a socket does.
        _ => return unsafe { originals::ioctl(fd, request, argument) },
    };
    let count = stacks::on(number, |stack| counted(stack, number));
    done(count.and_then(|count| {
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        // SAFETY: the caller's promise.
        unsafe { memory::store(count, place) }.map(|()| 0)
    }))
}
