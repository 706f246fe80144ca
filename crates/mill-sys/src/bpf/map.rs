//! Maps: an array that processes map into their memory, and the table of AF_XDP sockets.

use super::{Attributes, BpfError, Command, name_of, number_of};
use crate::memory::mapping::Mapping;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A map, by its descriptor, which is all that using it takes.
#[derive(Debug)]
pub struct Map(OwnedFd);

/// An array's memory in this process: writes are visible to the program without a system call.
#[derive(Debug)]
pub struct ArrayMemory(Mapping);

impl Map {
    /// Makes an array of one element of `bytes`, zeroed, that can be mapped into memory. A program reads it at a fixed
    /// address without a helper call, which an array of several elements would need.
    pub fn array(name: &str, bytes: u32) -> Result<Self, BpfError> {
        Self::create(name, ARRAY, bytes, 1, MMAPABLE)
    }

    /// Makes an empty table of up to `entries` AF_XDP sockets.
    pub fn sockets(name: &str, entries: u32) -> Result<Self, BpfError> {
        Self::create(name, XSKMAP, 4, entries, 0)
    }

    fn create(
        name: &str,
        map_type: u32,
        value_size: u32,
        max_entries: u32,
        map_flags: u32,
    ) -> Result<Self, BpfError> {
        MAP_CREATE
            .open(&mut Create {
                map_type,
                key_size: 4,
                value_size,
                max_entries,
                map_flags,
                inner_map_fd: 0,
                numa_node: 0,
                map_name: name_of(name),
            })
            .map(Self)
    }

    /// The map of a descriptor.
    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Enters a socket into a table: what the program redirects to `key` goes there from now on. The map holds no
    /// reference: when the socket's last descriptor is closed, the entry is removed.
    pub fn set_socket(&self, key: u32, socket: BorrowedFd<'_>) -> Result<(), BpfError> {
        let value = number_of(&socket);
        MAP_UPDATE_ELEM
            .run(&mut Element {
                map_fd: number_of(&self.0),
                padding: 0,
                key: &raw const key,
                value: &raw const value,
                flags: 0,
            })
            .map(drop)
    }

    /// Removes a socket from a table, if there is one.
    pub fn remove(&self, key: u32) -> Result<(), BpfError> {
        MAP_DELETE_ELEM
            .run(&mut Element {
                map_fd: number_of(&self.0),
                padding: 0,
                key: &raw const key,
                value: std::ptr::null(),
                flags: 0,
            })
            .map(drop)
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Map> for OwnedFd {
    fn from(map: Map) -> Self {
        map.0
    }
}

impl ArrayMemory {
    /// Maps an array of [`Map::array`] whose element has `bytes`; needs no privileges. `EINVAL` if the array is
    /// shorter.
    pub fn open(array: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Mapping::new(array, 0, bytes, false).map(Self)
    }

    /// Four bytes in native byte order; `None` if they are not inside, or `offset` is no multiple of four.
    pub fn atomic_u32(&self, offset: usize) -> Option<&AtomicU32> {
        self.0.atomic_u32(offset)
    }

    /// Eight bytes in native byte order; `None` if they are not inside, or `offset` is no multiple of eight.
    pub fn atomic_u64(&self, offset: usize) -> Option<&AtomicU64> {
        self.0.atomic_u64(offset)
    }
}

/// The beginning of BPF_MAP_CREATE's attributes.
#[repr(C)]
struct Create {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
    inner_map_fd: u32,
    numa_node: u32,
    map_name: [u8; 16],
}

/// The attributes of the commands for elements.
#[repr(C)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: *const u32,
    value: *const u32,
    flags: u64,
}

// The structures assume 64-bit pointers.
const _: () = assert!(size_of::<*const u32>() == 8);

// SAFETY: it points to nothing.
unsafe impl Attributes for Create {}

// SAFETY: keys and values of the maps of this file have four bytes, and are on the stack of the callers above; none of the
// commands writes to them.
unsafe impl Attributes for Element {}

const MAP_CREATE: Command = Command::new(0, "BPF_MAP_CREATE");
const MAP_UPDATE_ELEM: Command = Command::new(2, "BPF_MAP_UPDATE_ELEM");
const MAP_DELETE_ELEM: Command = Command::new(3, "BPF_MAP_DELETE_ELEM");

// Map types (enum bpf_map_type), and the flag of an array that can be mapped.
const ARRAY: u32 = 2;
const XSKMAP: u32 = 17;
const MMAPABLE: u32 = 1 << 10;
