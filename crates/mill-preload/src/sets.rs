//! epoll sets in several stacks: a set of the kernel that watches sockets of some stacks (`stacks=thread`) has a set beside it in each of
//! them. Its descriptor has the number of the first one, by which the others are found.

use crate::descriptors::{self, Entry};
use crate::held::StackNumbers;
use crate::memory::returned;
use crate::originals;
use crate::stack::Stack;
use crate::stacks;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// By the number of the first. Locked with a stack's lock held, as fork(2) copies it.
static FURTHER: Mutex<BTreeMap<u64, Vec<Number>>> = Mutex::new(BTreeMap::new());

/// How many sets are in several stacks: usually none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn table() -> MutexGuard<'static, BTreeMap<u64, Vec<Number>>> {
    FURTHER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The numbers beside the first one; a stack's lock is held.
pub(crate) fn further(first: Number) -> Vec<Number> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    let table = table();
    table.get(&first.to_bits()).cloned().unwrap_or_default()
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
            Entry::Set(first) => return Ok(further_in(stack, first)),
            Entry::Kernel => {}
            _ => return Err(Errno::INVALID),
        }
        // SAFETY: the command takes no argument.
        returned(unsafe { originals::fcntl(descriptor, libc::F_GETFD, 0) })?;
        let number = stack.sockets.add_set();
        if descriptors::claim(descriptor, Entry::Set(number)) {
            return Ok(number);
        }
        // Another thread was first, or the number is too large.
        stack.sockets.remove_set(number);
        if descriptors::find(descriptor) == Entry::Kernel {
            return Err(Errno::NO_DESCRIPTOR);
        }
    }
}

fn further_in(stack: &mut Stack, first: Number) -> Number {
    let mut table = table();
    let numbers = table.entry(first.to_bits()).or_default();
    let found = numbers
        .iter()
        .find(|number| number.slab() == stack.number())
        .copied();
    let number = found.unwrap_or_else(|| {
        let number = stack.sockets.add_set();
        numbers.push(number);
        number
    });
    COUNT.store(table.len(), Ordering::Release);
    number
}

/// The set is closed.
pub(crate) fn remove(first: Number) {
    let further = stacks::with(first, |stack| {
        stack.sockets.remove_set(first);
        let mut table = table();
        let further = table.remove(&first.to_bits());
        COUNT.store(table.len(), Ordering::Release);
        further
    });
    for number in further.flatten().into_iter().flatten() {
        stacks::with(number, |stack| stack.sockets.remove_set(number));
    }
}

/// In a child, which has all locks: the sets are its parent's.
pub(crate) fn forget_all() {
    table().clear();
    COUNT.store(0, Ordering::Release);
}
