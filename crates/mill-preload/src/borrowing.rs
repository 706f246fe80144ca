//! Connections of the parent that this process has as well (lending.rs), as a child after fork(2).
//!
//! One that was not used yet is [`Entry::Inherited`]: its descriptor only keeps the number. The first call that needs more makes it
//! [`Entry::Borrowed`]: a local socket whose other end is the parent's. Bytes, waits and ends are the kernel's from then on; addresses and
//! options are those of the connection.

use crate::descriptors::{self, Entry, own};
use crate::lending::Loan;
use crate::lending::message::{Message, VALUE_MAX};
use crate::lock::{Lock, LockGuard, Locked};
use crate::process::lost;
use crate::stack::Stack;
use crate::stacks::COUNT_MAX;
use crate::{kernel_options, placeholder};
use core::ffi::c_int;
use core::net::SocketAddr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};
use mill_sockets::errno::Errno;
use mill_sockets::slab::Number;
use mill_sockets::socket::Options;
use mill_sys::passing;
use mill_tcp::time::Duration as StackDuration;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// All of them.
mod table;
use table::Table;

/// Names of local sockets.
pub(crate) mod name;

/// For each stack of the parent, the channel to it.
static CHANNELS: [AtomicI32; COUNT_MAX as usize] =
    [const { AtomicI32::new(NONE) }; COUNT_MAX as usize];

const NONE: c_int = -1;

/// The parent's stacks as they were at the fork, which tell addresses and options. Nothing else may be done with them.
static FORMER: [AtomicPtr<Stack>; COUNT_MAX as usize] =
    [const { AtomicPtr::new(null_mut()) }; COUNT_MAX as usize];

/// Another process has the channels as well, as a child of this one, or as its parent.
static IS_SHARED: AtomicBool = AtomicBool::new(false);

static BORROWED: Lock<Table> = Lock::new(Table::new());

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Borrowed {
    /// The parent's; of one that another program had before exec(2), none.
    number: Option<Number>,
    pub(crate) local: Result<SocketAddr, Errno>,
    pub(crate) peer: Result<SocketAddr, Errno>,
    options: Options,
}

impl Borrowed {
    /// One of a process that is not this one's parent.
    fn of_another(local: SocketAddr, peer: SocketAddr) -> Self {
        Self {
            number: None,
            local: Ok(local),
            peer: Ok(peer),
            options: Options {
                is_ipv6: local.is_ipv6(),
                ..Options::default()
            },
        }
    }
}

/// For fork(2).
pub(crate) fn lock() -> Locked {
    Box::new(table())
}

fn table() -> LockGuard<'static, Table> {
    BORROWED.lock()
}

/// In a child, with all locks: this stack was its parent's. What that had of its own parent's stack of the same number and has not used
/// is lost: from now on the number means this one.
pub(crate) fn keep_former(number: u8, stack: Stack) {
    lose(number);
    if let Some(place) = FORMER.get(usize::from(number)) {
        place.store(Box::into_raw(Box::new(stack)), Ordering::Release);
    }
}

/// What is not used yet is lost, of all stacks.
pub(crate) fn lose_all() {
    (0..COUNT_MAX).for_each(lose);
}

fn lose(number: u8) {
    let place = CHANNELS.get(usize::from(number));
    let Some(channel) = place.map(|place| place.swap(NONE, Ordering::AcqRel)) else {
        return;
    };
    if channel == NONE {
        return;
    }
    let is_of_it = |entry: &Entry| matches!(entry, Entry::Inherited(it) if it.slab() == number);
    for (descriptor, _) in descriptors::all().filter(|(_, entry)| is_of_it(entry)) {
        descriptors::set(descriptor, Entry::Lost);
    }
    // SAFETY: the number is this library's, and no value owns it.
    own::close(unsafe { OwnedFd::from_raw_fd(channel) });
}

/// In a child: what its parent lends it, of stacks of which [`keep_former`] was called.
pub(crate) fn begin(loans: Vec<Loan>) {
    note_shared();
    for loan in loans {
        if let Some(place) = CHANNELS.get(usize::from(loan.number)) {
            place.store(loan.of_child.into_raw_fd(), Ordering::Release);
        }
    }
}

/// This process was forked by another one, or has forked one: what one of them has closed may still be the other's.
pub(crate) fn note_shared() {
    if CHANNELS
        .iter()
        .any(|place| place.load(Ordering::Acquire) != NONE)
    {
        IS_SHARED.store(true, Ordering::Release);
    }
}

/// What a connection of the parent is in this child.
pub(crate) fn inherited(number: Number) -> Entry {
    match channel(number) {
        Some(_) => Entry::Inherited(number),
        None => Entry::Lost,
    }
}

fn channel(number: Number) -> Option<BorrowedFd<'static>> {
    let place = CHANNELS.get(usize::from(number.slab()))?;
    let descriptor = place.load(Ordering::Acquire);
    // SAFETY: the descriptor is open: programs cannot close it, and this library only closes it while it forks.
    (descriptor != NONE).then(|| unsafe { BorrowedFd::borrow_raw(descriptor) })
}

fn former(number: Number) -> Option<&'static Stack> {
    let place = FORMER.get(usize::from(number.slab()))?;
    // SAFETY: null, or a stack that was leaked for good, which nothing changes any more.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

/// A connection as it was at the fork.
fn known(number: Number) -> Option<Borrowed> {
    let sockets = &former(number)?.sockets;
    Some(Borrowed {
        number: Some(number),
        local: sockets.local(number),
        peer: sockets.peer(number),
        options: sockets.options(number).ok()?.clone(),
    })
}

/// The addresses of a connection that is inherited or borrowed.
pub(crate) fn find(entry: Entry) -> Option<Borrowed> {
    match entry {
        Entry::Inherited(number) => known(number),
        Entry::Borrowed(place) => table().get_mut(place).cloned(),
        _ => None,
    }
}

/// The program uses an inherited connection: it becomes a borrowed one, at all of its descriptors.
#[cold]
pub(crate) fn take(descriptor: c_int) -> Entry {
    let mut table = table();
    let Entry::Inherited(number) = descriptors::peek(descriptor) else {
        // Another thread was first.
        return descriptors::peek(descriptor);
    };
    let Some((socket, place)) = known(number).and_then(|known| {
        let socket = claim(&known, number)?;
        set_up(&socket, &known.options);
        Some((socket, table.add(known)))
    }) else {
        let _ = lost();
        return Entry::Lost;
    };
    let mine = |(_, entry): &(c_int, Entry)| *entry == Entry::Inherited(number);
    for (descriptor, _) in descriptors::all().filter(mine) {
        placeholder::replace(socket.as_raw_fd(), descriptor);
        descriptors::set(descriptor, Entry::Borrowed(place));
    }
    drop(table);
    own::close(socket);
    Entry::Borrowed(place)
}

/// Calls on it wait as those on the connection. What can't be set is left as it is: the socket is new, and takes all of these.
pub(crate) fn set_up(socket: &UnixStream, options: &Options) {
    let _ = socket.set_nonblocking(!options.waits);
    let timeout = |timeout: StackDuration| Duration::new(timeout.as_secs(), timeout.subsec_nanos());
    let _ = socket.set_read_timeout(options.receive_timeout.map(timeout));
    let _ = socket.set_write_timeout(options.send_timeout.map(timeout));
}

/// Asks the parent for a connection, and waits until the channel has room for that.
fn claim(known: &Borrowed, number: Number) -> Option<UnixStream> {
    let channel = channel(number)?;
    own::during(|| {
        let (near, far) = UnixStream::pair().ok()?;
        if let (Ok(local), Ok(peer)) = (known.local, known.peer) {
            name::give(&far, &near, (local, peer));
        }
        let message = Message::Claim(number).to_bytes();
        if passing::send(channel, &message, &[far.as_fd()]).is_err() {
            // The parent is gone.
            own::close(near);
            own::close(far);
            return None;
        }
        own::close(far);
        Some(near)
    })
}

/// The program has closed an inherited connection that it has not used.
pub(crate) fn release(number: Number) {
    let is_left = |(_, entry): (c_int, Entry)| entry == Entry::Inherited(number);
    if IS_SHARED.load(Ordering::Acquire) || descriptors::all().any(is_left) {
        return;
    }
    if let Some(channel) = channel(number) {
        // Without that the parent has it until this process ends.
        let _ = passing::send(channel, &Message::Release(number).to_bytes(), &[]);
    }
}

/// Whether an option is the connection's, and not the local socket's.
pub(crate) fn has_option(level: c_int, name: c_int) -> bool {
    !OF_THE_SOCKET.contains(&(level, name))
}

/// setsockopt(2) on a borrowed connection.
pub(crate) fn set(place: u64, level: c_int, name: c_int, value: &[u8]) -> Result<c_int, Errno> {
    let mut table = table();
    let borrowed = table.get_mut(place).ok_or(Errno::NOT_CONNECTED)?;
    let value = value.get(..VALUE_MAX).unwrap_or(value);
    borrowed.options.set(level, name, value)?;
    // After exec(2), or where the parent is gone, there is no connection to set it for.
    if let Some(number) = borrowed.number
        && let Some(channel) = channel(number)
    {
        let message = Message::Set(number, level, name, value).to_bytes();
        let _ = passing::send(channel, &message, &[]);
    }
    Ok(0)
}

/// getsockopt(2) of a borrowed connection.
pub(crate) fn option(entry: Entry, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
    let borrowed = find(entry).ok_or(Errno::NOT_CONNECTED)?;
    let value = borrowed.options.value(level, name);
    value
        .map(|value| value.to_ne_bytes().to_vec())
        .ok_or(Errno::NO_OPTION)
}

/// The variable of the environment by which a program knows the addresses of connections that it gets by exec(2).
pub(crate) const VARIABLE: &str = "MILLSTREAM_CONNECTIONS";

/// Its value for a program that this process is about to become or to start: of each connection that it gets the descriptor, the cookie
/// of its local socket, and both addresses. `None` without any.
/// `lent` are further ones.
pub(crate) fn described(lent: &[String]) -> Option<String> {
    let passed = descriptors::all().filter_map(|(descriptor, entry)| {
        let Entry::Borrowed(_) = entry else {
            return None;
        };
        let borrowed = find(entry)?;
        let cookie = kernel_options::cookie(descriptor)?;
        let (local, peer) = (borrowed.local.ok()?, borrowed.peer.ok()?);
        Some(describe(descriptor, cookie, (local, peer)))
    });
    let passed: Vec<String> = passed.chain(lent.iter().cloned()).collect();
    (!passed.is_empty()).then(|| passed.join(" "))
}

/// One of them: the descriptor that the program has it by, and the cookie of the local socket.
pub(crate) fn describe(
    descriptor: c_int,
    cookie: u64,
    (local, peer): (SocketAddr, SocketAddr),
) -> String {
    format!("{descriptor},{cookie},{local},{peer}")
}

/// At the beginning of a process: the connections of the former program. The cookie tells them from what has their numbers otherwise,
/// as in a program further on.
pub(crate) fn recall() {
    let described = std::env::var(VARIABLE).unwrap_or_default();
    for described in described.split(' ') {
        let _ = recall_one(described);
    }
}

/// A descriptor has come by a message (SCM_RIGHTS): it may be a connection's.
pub(crate) fn recognize(descriptor: c_int) {
    if let Some((local, peer)) = name::read(descriptor) {
        let mut table = table();
        let place = table.add(Borrowed::of_another(local, peer));
        descriptors::set(descriptor, Entry::Borrowed(place));
    }
}

fn recall_one(described: &str) -> Option<()> {
    let mut parts = described.split(',');
    let descriptor: c_int = parts.next()?.parse().ok()?;
    let cookie: u64 = parts.next()?.parse().ok()?;
    let local: SocketAddr = parts.next()?.parse().ok()?;
    let peer: SocketAddr = parts.next()?.parse().ok()?;
    let mut table = table();
    let place = table.add(Borrowed::of_another(local, peer));
    // Where it is started with other numbers (posix_spawn(3)), these are its input and output.
    for descriptor in [descriptor, 0, 1, 2] {
        if kernel_options::cookie(descriptor) == Some(cookie) {
            descriptors::set(descriptor, Entry::Borrowed(place));
        }
    }
    Some(())
}

/// What local sockets have as connections do.
const OF_THE_SOCKET: [(c_int, c_int); 7] = [
    (libc::SOL_SOCKET, libc::SO_ERROR),
    (libc::SOL_SOCKET, libc::SO_TYPE),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::SOL_SOCKET, libc::SO_RCVLOWAT),
    (libc::SOL_SOCKET, libc::SO_ACCEPTCONN),
    (libc::SOL_SOCKET, libc::SO_COOKIE),
];
