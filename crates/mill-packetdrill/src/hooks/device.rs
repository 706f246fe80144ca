//! The wire and the clock.

use super::memory::{input, output, place, stage};
use crate::interface::TimeVal;
use core::ffi::{c_int, c_longlong, c_uint, c_void};

pub(super) unsafe extern "C" fn netdev_send(
    userdata: *mut c_void,
    packet: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `len` bytes are the packet.
    let packet = unsafe { input(packet, len) };
    stage.call(|world| world.receive(packet));
    0
}

/// If nothing will ever come, a packet without bytes, which packetdrill takes for a failure.
pub(super) unsafe extern "C" fn netdev_receive(
    userdata: *mut c_void,
    into: *mut c_void,
    len: *mut usize,
    micros: *mut c_longlong,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: packetdrill's own.
    let Some(len) = (unsafe { place(len) }) else {
        return -1;
    };
    // SAFETY: packetdrill's own.
    let Some(micros) = (unsafe { place(micros) }) else {
        return -1;
    };
    // SAFETY: `len` bytes are there.
    let into = unsafe { output(into, *len) };
    let (at, packet) = stage.next_packet().unwrap_or_default();
    let count = packet.len().min(into.len());
    into[..count].copy_from_slice(&packet[..count]);
    *len = count;
    *micros = c_longlong::try_from(at).unwrap_or(c_longlong::MAX);
    0
}

pub(super) unsafe extern "C" fn usleep(userdata: *mut c_void, micros: c_uint) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    stage.sleep(micros.into());
    0
}

pub(super) unsafe extern "C" fn gettimeofday(
    userdata: *mut c_void,
    into: *mut TimeVal,
    _zone: *mut c_void,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    let now = i64::try_from(stage.look_at_clock()).unwrap_or(i64::MAX);
    // SAFETY: packetdrill's own.
    if let Some(into) = unsafe { place(into) } {
        *into = TimeVal {
            sec: now / 1_000_000,
            usec: now % 1_000_000,
        };
    }
    0
}
