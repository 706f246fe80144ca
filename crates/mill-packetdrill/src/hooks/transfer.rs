//! Reading and writing.

use super::memory::{input, output, place, places, stage, transferred};
use crate::interface::{IoVec, MsgHdr};
use crate::stage::Stage;
use core::ffi::{c_int, c_uint, c_void};
use mill_sockets::errno::Errno;

const MSG_PEEK: c_int = 2;
const MSG_DONTWAIT: c_int = 0x40;
const MSG_EOR: c_int = 0x80;
const MSG_MORE: c_int = 0x8000;
const MSG_ERRQUEUE: c_int = 0x2000;
const MSG_FASTOPEN: c_int = 0x2000_0000;

fn receive(stage: &Stage, fd: c_int, into: &mut [u8], flags: c_int) -> Result<usize, Errno> {
    if flags & MSG_ERRQUEUE != 0 {
        return Err(Errno::AGAIN);
    }
    stage.blocking(|world| {
        let read = world.read(fd, into, flags & MSG_PEEK != 0)?;
        if read.is_none() && (flags & MSG_DONTWAIT != 0 || !world.waits(fd)?) {
            return Err(Errno::AGAIN);
        }
        Ok(read)
    })
}

/// All of it, if the socket waits; else what there is room for. `to` are the bytes of an address to connect to first, if
/// the flags say so.
fn transmit(
    stage: &Stage,
    fd: c_int,
    bytes: &[u8],
    flags: c_int,
    to: &[u8],
) -> Result<usize, Errno> {
    let mut written = 0;
    let is_open = stage.call(|world| world.is_open(fd))?;
    let target = if is_open {
        None
    } else if flags & MSG_FASTOPEN != 0 {
        Some(super::address::parse(to).map_err(|_| Errno::NOT_SUPPORTED)?)
    } else {
        stage.call(|world| world.deferred_target(fd))?
    };
    if let Some(target) = target {
        written = stage.call(|world| world.open_fast(fd, target, bytes))?;
        let waits = stage.call(|world| world.waits(fd))? && flags & MSG_DONTWAIT == 0;
        if !waits {
            return (written > 0).then_some(written).ok_or(Errno::IN_PROGRESS);
        }
        stage.blocking(|world| world.is_connected(fd))?;
        if written == bytes.len() {
            return Ok(written);
        }
    }
    stage.blocking(|world| {
        let waits = flags & MSG_DONTWAIT == 0 && world.waits(fd)?;
        let rest = bytes.get(written..).unwrap_or_default();
        match world.write(fd, rest, flags & MSG_MORE != 0, flags & MSG_EOR != 0) {
            Ok(Some(count)) => written += count,
            Ok(None) => {}
            // What was taken before is told first.
            Err(error) if written == 0 => return Err(error),
            Err(_) => return Ok(Some(written)),
        }
        if written == bytes.len() || (!waits && written > 0) {
            Ok(Some(written))
        } else if waits {
            Ok(None)
        } else {
            Err(Errno::AGAIN)
        }
    })
}

pub(super) unsafe extern "C" fn read(
    userdata: *mut c_void,
    fd: c_int,
    into: *mut c_void,
    len: usize,
) -> isize {
    // SAFETY: the same promises.
    unsafe { recv(userdata, fd, into, len, 0) }
}

pub(super) unsafe extern "C" fn recv(
    userdata: *mut c_void,
    fd: c_int,
    into: *mut c_void,
    len: usize,
    flags: c_int,
) -> isize {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `len` bytes are there.
    let into = unsafe { output(into, len) };
    transferred(receive(stage, fd, into, flags))
}

pub(super) unsafe extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    into: *mut c_void,
    len: usize,
    flags: c_int,
    _address: *mut c_void,
    address_len: *mut c_uint,
) -> isize {
    // SAFETY: null or packetdrill's own.
    if let Some(address_len) = unsafe { place(address_len) } {
        // A stream has no sender to tell.
        *address_len = 0;
    }
    // SAFETY: the same promises.
    unsafe { recv(userdata, fd, into, len, flags) }
}

pub(super) unsafe extern "C" fn readv(
    userdata: *mut c_void,
    fd: c_int,
    pieces: *const IoVec,
    count: c_int,
) -> isize {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `count` pieces are there.
    transferred(unsafe { scatter(stage, fd, pieces, count, 0) })
}

pub(super) unsafe extern "C" fn recvmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *mut MsgHdr,
    flags: c_int,
) -> isize {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: packetdrill's own.
    let Some(message) = (unsafe { place(message) }) else {
        return transferred(Err(Errno::INVALID));
    };
    message.name_len = 0;
    message.control_len = 0;
    message.flags = 0;
    let count = c_int::try_from(message.iov_len).unwrap_or(0);
    // SAFETY: `count` pieces are there.
    transferred(unsafe { scatter(stage, fd, message.iov, count, flags) })
}

/// Reads into the pieces, one after the other.
///
/// # Safety
/// `count` pieces are there, each with room as it says.
unsafe fn scatter(
    stage: &Stage,
    fd: c_int,
    pieces: *const IoVec,
    count: c_int,
    flags: c_int,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    let pieces = unsafe { places(pieces.cast_mut(), usize::try_from(count).unwrap_or(0)) };
    let room = pieces.iter().map(|piece| piece.len).sum();
    let mut bytes = vec![0; room];
    let read = receive(stage, fd, &mut bytes, flags)?;
    let mut rest = bytes.get(..read).unwrap_or_default();
    for piece in pieces {
        // SAFETY: the caller's promise.
        let into = unsafe { output(piece.base, piece.len) };
        let (now, later) = rest.split_at(rest.len().min(into.len()));
        into[..now.len()].copy_from_slice(now);
        rest = later;
    }
    Ok(read)
}

pub(super) unsafe extern "C" fn write(
    userdata: *mut c_void,
    fd: c_int,
    bytes: *const c_void,
    len: usize,
) -> isize {
    // SAFETY: the same promises.
    unsafe { send(userdata, fd, bytes, len, 0) }
}

pub(super) unsafe extern "C" fn send(
    userdata: *mut c_void,
    fd: c_int,
    bytes: *const c_void,
    len: usize,
    flags: c_int,
) -> isize {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `len` bytes are there.
    let bytes = unsafe { input(bytes, len) };
    transferred(transmit(stage, fd, bytes, flags, &[]))
}

pub(super) unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    bytes: *const c_void,
    len: usize,
    flags: c_int,
    address: *const c_void,
    address_len: c_uint,
) -> isize {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `len` bytes are there.
    let bytes = unsafe { input(bytes, len) };
    // SAFETY: as many bytes are the address.
    let to = unsafe { input(address, address_len as usize) };
    transferred(transmit(stage, fd, bytes, flags, to))
}

pub(super) unsafe extern "C" fn writev(
    userdata: *mut c_void,
    fd: c_int,
    pieces: *const IoVec,
    count: c_int,
) -> isize {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `count` pieces are there.
    let bytes = unsafe { gathered(pieces, count) };
    transferred(transmit(stage, fd, &bytes, 0, &[]))
}

pub(super) unsafe extern "C" fn sendmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *const MsgHdr,
    flags: c_int,
) -> isize {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: packetdrill's own; it is only read.
    let Some(message) = (unsafe { message.as_ref() }) else {
        return transferred(Err(Errno::INVALID));
    };
    let count = c_int::try_from(message.iov_len).unwrap_or(0);
    // SAFETY: `count` pieces are there.
    let bytes = unsafe { gathered(message.iov, count) };
    // SAFETY: as many bytes are the address.
    let to = unsafe { input(message.name, message.name_len as usize) };
    transferred(transmit(stage, fd, &bytes, flags, to))
}

/// The bytes of all pieces.
///
/// # Safety
/// `count` pieces are there, each with bytes as it says.
unsafe fn gathered(pieces: *const IoVec, count: c_int) -> Vec<u8> {
    // SAFETY: the caller's promise.
    let pieces = unsafe { places(pieces.cast_mut(), usize::try_from(count).unwrap_or(0)) };
    let mut bytes = Vec::new();
    for piece in pieces {
        // SAFETY: the caller's promise.
        bytes.extend_from_slice(unsafe { input(piece.base, piece.len) });
    }
    bytes
}
