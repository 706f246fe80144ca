//! Maps: an array that processes map into their memory, and the table of AF_XDP's sockets.

use super::{Attributes, BpfError, Command, name_of, number_of};
use crate::memory::mapping::Mapping;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A map, by its descriptor: whoever has that can use it, whatever its rights are.
#[derive(Debug)]
pub struct Map(OwnedFd);

/// An array's memory in this process. What is written here is what the program reads, with no system call in between.
#[derive(Debug)]
pub struct ArrayMemory(Mapping);

impl Map {
    /// An array of one element of `bytes`, all zero, that can be mapped. A program reads it at a fixed address, with no
    /// call (an array of several would need one).
    pub fn array(name: &str, bytes: u32) -> Result<Self, BpfError> {
        Self::create(name, ARRAY, bytes, 1, MMAPABLE)
    }

    /// A table of `entries` AF_XDP sockets, none of which is there yet.
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

    /// A map that somebody else has made.
    pub fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Puts a socket into a table of sockets: what the program redirects to `key` goes there from now on. The map keeps no
    /// socket open: with its last descriptor it leaves the map.
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

    /// Takes a socket out of a table of sockets, if there is one.
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
    /// Maps an array of [`Map::array`] with an element of `bytes`; needs no rights. `EINVAL` if the array is shorter.
    pub fn open(array: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Mapping::new(array, 0, bytes, false).map(Self)
    }

    /// Four bytes in the machine's order; `None` if they are not inside, or `offset` is no multiple of four.
    pub fn atomic_u32(&self, offset: usize) -> Option<&AtomicU32> {
        self.0.atomic_u32(offset)
    }

    /// Eight bytes in the machine's order; `None` if they are not inside, or `offset` is no multiple of eight.
    pub fn atomic_u64(&self, offset: usize) -> Option<&AtomicU64> {
        self.0.atomic_u64(offset)
    }
}

/// The beginning of what BPF_MAP_CREATE takes.
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

/// What the commands for elements take.
#[repr(C)]
struct Element {
    map_fd: u32,
    padding: u32,
    key: *const u32,
    value: *const u32,
    flags: u64,
}

// The structures assume pointers of 64 bits, as all of the kernel's do.
const _: () = assert!(size_of::<*const u32>() == 8);

// SAFETY: it points to nothing.
unsafe impl Attributes for Create {}

// SAFETY: keys and values of the maps of this file have four bytes, and are on the stack of the callers above; none of the
// commands writes to them.
unsafe impl Attributes for Element {}

const MAP_CREATE: Command = Command::new(0, "BPF_MAP_CREATE");
const MAP_UPDATE_ELEM: Command = Command::new(2, "BPF_MAP_UPDATE_ELEM");
const MAP_DELETE_ELEM: Command = Command::new(3, "BPF_MAP_DELETE_ELEM");

// Kinds of maps (enum bpf_map_type) and the flag by which an array can be mapped.
const ARRAY: u32 = 2;
const XSKMAP: u32 = 17;
const MMAPABLE: u32 = 1 << 10;
