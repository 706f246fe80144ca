//! epoll sets in several stacks: a set of the kernel that watches sockets of some stacks (`stacks=thread`) has a set beside it in each of
//! them. Its descriptor has the number of the first one, by which the others are found.

use crate::calls::events::at_kernel;
use crate::descriptors::{self, Entry};
use crate::held::StackNumbers;
use crate::lock::{Lock, LockGuard, Locked};
use crate::memory::returned;
use crate::stack::Stack;
use crate::{keeper, originals, stacks};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use mill_sockets::epoll_set::Interest;
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;

/// Locked with a stack's lock held, as fork(2) copies it.
static TABLE: Lock<Table> = Lock::new(Table {
    further: BTreeMap::new(),
    nestings: Vec::new(),
});

/// Sets that were made, by their descriptors: duplicates have the same name. What was made before the set had anything of the stack has no other
/// way to be found. A number that is another file's by now is none of a set.
static NAMES: Lock<BTreeMap<c_int, u64>> = Lock::new(BTreeMap::new());

/// For fork(2).
pub(crate) fn lock_names() -> Locked {
    Box::new(NAMES.lock())
}

/// A set was made, with this descriptor.
pub(crate) fn note_made(descriptor: c_int) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    if descriptor >= 0 && stacks::is_offered() {
        let name = LAST.fetch_add(1, Ordering::Relaxed);
        HAS_NAMES.store(true, Ordering::Relaxed);
        NAMES.lock().insert(descriptor, name);
    }
}

/// Any set was made.
static HAS_NAMES: AtomicBool = AtomicBool::new(false);

/// A descriptor was closed.
#[inline]
pub(crate) fn note_closed(descriptor: c_int) {
    if HAS_NAMES.load(Ordering::Relaxed) {
        NAMES.lock().remove(&descriptor);
    }
}

/// What may be a set has a duplicate.
pub(crate) fn note_duplicate(descriptor: c_int, made: c_int) {
    if !HAS_NAMES.load(Ordering::Relaxed) {
        return;
    }
    let mut names = NAMES.lock();
    if let Some(name) = names.get(&descriptor).copied() {
        names.insert(made, name);
    } else {
        names.remove(&made);
    }
}

/// The other descriptors of a set.
pub(crate) fn duplicates(descriptor: c_int) -> Vec<c_int> {
    let names = NAMES.lock();
    let Some(name) = names.get(&descriptor) else {
        return Vec::new();
    };
    let is_same = |(other, its): &(&c_int, &u64)| **other != descriptor && *its == name;
    let same = names.iter().filter(is_same);
    same.map(|(other, _)| *other).collect()
}

/// How many sets are in several stacks: usually none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

#[derive(Debug)]
struct Table {
    /// By the number of the first.
    further: BTreeMap<u64, Vec<Number>>,
    nestings: Vec<Nesting>,
}

/// A set that another one watches: in each stack in which it is.
#[derive(Clone, Copy, Debug)]
struct Nesting {
    inner: Number,
    outer: Number,
    /// Of the inner one.
    descriptor: c_int,
    interest: Interest,
}

fn table() -> LockGuard<'static, Table> {
    TABLE.lock()
}

/// The numbers beside the first one; a stack's lock is held.
pub(crate) fn further(first: Number) -> Vec<Number> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    let table = table();
    table
        .further
        .get(&first.to_bits())
        .cloned()
        .unwrap_or_default()
}

/// The stacks in which a set is.
pub(crate) fn stacks_of(first: Number) -> StackNumbers {
    let mut stacks = StackNumbers::of(first);
    if COUNT.load(Ordering::Acquire) > 0 && !stacks::is_inside() {
        let _guard = stacks::lock(first.slab());
        further(first)
            .into_iter()
            .for_each(|number| stacks.add(number));
    }
    stacks
}

/// The number in a stack of the set that has this descriptor; makes one if there is none yet.
pub(crate) fn number_in(stack: &mut Stack, descriptor: c_int) -> Result<Number, Errno> {
    loop {
        match descriptors::find(descriptor) {
            Entry::Set(first) if first.slab() == stack.number() => return Ok(first),
            Entry::Set(first) => {
                let mut table = table();
                let number = table.further_in(stack, first);
                COUNT.store(table.further.len(), Ordering::Release);
                return Ok(number);
            }
            Entry::Kernel => {}
            _ => return Err(Errno::INVALID),
        }
        // SAFETY: the command takes no argument.
        returned(unsafe { originals::fcntl(descriptor, libc::F_GETFD, 0) })?;
        let number = stack.sockets.add_set();
        if descriptors::claim(descriptor, Entry::Set(number)) {
            let others = duplicates(descriptor).into_iter();
            for other in others.filter(|other| is_set(*other)) {
                descriptors::claim(other, Entry::Set(number));
                at_kernel::end(other);
            }
            at_kernel::end(descriptor);
            return Ok(number);
        }
        // Another thread was first, or the number is too large.
        stack.sockets.remove_set(number);
        if descriptors::find(descriptor) == Entry::Kernel {
            return Err(Errno::NO_DESCRIPTOR);
        }
    }
}

/// Whether a descriptor is a set: it knows that it does not watch what no program has, and what is none says otherwise. There may be no
/// /proc to look at.
pub(crate) fn is_set(fd: c_int) -> bool {
    let (own, nothing) = (keeper::socket().as_raw_fd(), core::ptr::null_mut());
    // SAFETY: the operation takes no event.
    let left = unsafe { originals::epoll_ctl(fd, libc::EPOLL_CTL_DEL, own, nothing) };
    returned(left) == Err(Errno::NO_ENTRY)
}

impl Table {
    fn further_in(&mut self, stack: &mut Stack, first: Number) -> Number {
        if first.slab() == stack.number() {
            return first;
        }
        let numbers = self.further.entry(first.to_bits()).or_default();
        let mut each = numbers.iter();
        if let Some(found) = each.find(|number| number.slab() == stack.number()) {
            return *found;
        }
        let number = stack.sockets.add_set();
        numbers.push(number);
        // Sets that watch it are in its stacks, too; the kernel lets none watch itself.
        let nestings = self
            .nestings
            .iter()
            .filter(|nesting| nesting.inner == first);
        let nestings: Vec<Nesting> = nestings.copied().collect();
        for nesting in nestings {
            let outer = self.further_in(stack, nesting.outer);
            let (descriptor, interest) = (nesting.descriptor, nesting.interest);
            let _ = stack.sockets.watch_set(outer, number, descriptor, interest);
        }
        number
    }
}

/// A set watches another one with this descriptor in all stacks from now on, in this way; `None` for no more. A stack's lock is held.
pub(crate) fn nest([outer, inner]: [Number; 2], descriptor: c_int, interest: Option<Interest>) {
    let nestings = &mut table().nestings;
    nestings
        .retain(|other| (other.outer, other.inner, other.descriptor) != (outer, inner, descriptor));
    nestings.extend(interest.map(|interest| Nesting {
        inner,
        outer,
        descriptor,
        interest,
    }));
}

/// A set, and those that watch it. A stack's lock is held.
pub(crate) fn with_outer(first: Number) -> Vec<Number> {
    let nestings = &table().nestings;
    let mut found = vec![first];
    let mut place = 0;
    while let Some(inner) = found.get(place).copied() {
        let outer = nestings.iter().filter(|nesting| nesting.inner == inner);
        for nesting in outer {
            if !found.contains(&nesting.outer) {
                found.push(nesting.outer);
            }
        }
        place += 1;
    }
    found
}

/// The set is closed.
pub(crate) fn remove(first: Number) {
    let further = stacks::with(first, |stack| {
        stack.sockets.remove_set(first);
        let mut table = table();
        let further = table.further.remove(&first.to_bits());
        let nestings = &mut table.nestings;
        nestings.retain(|nesting| nesting.inner != first && nesting.outer != first);
        COUNT.store(table.further.len(), Ordering::Release);
        further
    });
    for number in further.flatten().into_iter().flatten() {
        stacks::with(number, |stack| stack.sockets.remove_set(number));
    }
}

/// In a child, which has all locks: the sets are its parent's.
pub(crate) fn forget_all() {
    let mut table = table();
    table.further.clear();
    table.nestings.clear();
    COUNT.store(0, Ordering::Release);
}
