//! Memory that several processes map: a memfd (memfd_create(2)) and this process's mapping of it.
//!
//! Other processes may write to the memory at any time. This module therefore gives out atomics, copies, and slices of
//! frames whose owner is known (`frames::Frames`); whatever a peer may have written has to be copied before it is
//! checked.

use crate::process::check;
use mapping::Mapping;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32};

/// Frames of equal size, each with its owner.
pub mod frames;

/// Memory as numbers that may be read while they are written.
pub mod words;

/// Mapped memory of any descriptor.
pub(crate) mod mapping;

/// A memfd with its mapping. It can be used by one thread at a time; other threads map it for themselves.
#[derive(Debug)]
pub struct SharedMemory {
    mapping: Mapping,
    file: OwnedFd,
    is_huge: bool,
    is_sealed: bool,
}

/// The size of the memory's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Ordinary pages of 4 KiB.
    Small,
    /// Pages of 2 MiB, which the administrator has to reserve (vm.nr_hugepages): fewer misses of the TLB.
    Huge,
}

impl Pages {
    /// Bytes of a page.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Small => 4 << 10,
            Self::Huge => 2 << 20,
        }
    }
}

impl SharedMemory {
    /// Makes memory of at least `bytes`, rounded up to whole pages, zeroed and allocated; `name` is only for /proc. Its
    /// length is sealed. `Huge` fails with ENOMEM where too few such pages are reserved.
    pub fn create(name: &str, bytes: usize, pages: Pages) -> io::Result<Self> {
        Self::make(name, bytes, (pages, true))
    }

    /// The same of small pages, each of which is allocated when it is used first.
    pub fn create_unallocated(name: &str, bytes: usize) -> io::Result<Self> {
        Self::make(name, bytes, (Pages::Small, false))
    }

    fn make(name: &str, bytes: usize, (pages, is_populated): (Pages, bool)) -> io::Result<Self> {
        let name = CString::new(name)?;
        let len = bytes
            .max(1)
            .checked_next_multiple_of(pages.bytes())
            .ok_or_else(invalid)?;
        let kind = match pages {
            Pages::Small => 0,
            Pages::Huge => libc::MFD_HUGETLB | libc::MFD_HUGE_2MB,
        };
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING | kind;
        // SAFETY: the pointer is to a NUL-terminated string that outlives the call.
        let number = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        check(number)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(number) };
        let size = libc::off_t::try_from(len).map_err(|_| invalid())?;
        // SAFETY: ftruncate takes numbers.
        check(unsafe { libc::ftruncate(file.as_raw_fd(), size) })?;
        seal(
            file.as_fd(),
            libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL,
        )?;
        Ok(Self {
            mapping: Mapping::new(file.as_fd(), 0, len, is_populated)?,
            file,
            is_huge: pages == Pages::Huge,
            is_sealed: true,
        })
    }

    /// Maps the whole of a memfd that another process has made. Seals it against shrinking if that is possible; see
    /// [`Self::is_sealed`].
    pub fn open(file: OwnedFd) -> io::Result<Self> {
        // Sealed before its length is read, so that it cannot be shortened in between. Fails where the file cannot be
        // sealed (any more); `is_sealed` tells the result.
        let _ = seal(file.as_fd(), libc::F_SEAL_SHRINK);
        // SAFETY: F_GET_SEALS takes no argument.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        // SAFETY: a stat is plain numbers, for which zero is valid.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: fstat writes a stat, which the pointer is to.
        check(unsafe { libc::fstat(file.as_raw_fd(), &raw mut status) })?;
        let len = usize::try_from(status.st_size).map_err(|_| invalid())?;
        Ok(Self {
            mapping: Mapping::new(file.as_fd(), 0, len, false)?,
            is_huge: is_huge(file.as_fd())?,
            is_sealed: seals != -1 && seals & libc::F_SEAL_SHRINK != 0,
            file,
        })
    }

    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Always false: there is no empty mapping.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its pages are of 2 MiB.
    pub fn is_huge(&self) -> bool {
        self.is_huge
    }

    /// Whether it is sealed against shrinking. An access to a part that was cut off would kill this process (SIGBUS):
    /// the memory of a peer that is not trusted has to be sealed.
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Four bytes in native byte order; `None` if they are not inside, or `offset` is no multiple of four.
    #[inline]
    pub fn atomic_u32(&self, offset: usize) -> Option<&AtomicU32> {
        self.mapping.atomic_u32(offset)
    }

    /// Sixteen bytes as four numbers in native byte order; `None` if they are not inside, or `offset` is no multiple of four.
    #[inline]
    pub fn four_atomic_u32(&self, offset: usize) -> Option<&[AtomicU32; 4]> {
        self.mapping.four_atomic_u32(offset)
    }

    /// Two bytes in native byte order; `None` if they are not inside, or `offset` is odd.
    #[inline]
    pub fn atomic_u16(&self, offset: usize) -> Option<&AtomicU16> {
        self.mapping.atomic_u16(offset)
    }

    /// Copies out of the memory; `None`, and nothing copied, if that is not inside.
    #[must_use]
    pub fn read(&self, offset: usize, to: &mut [u8]) -> Option<()> {
        self.mapping.read(offset, to)
    }

    /// Copies into the memory; `None`, and nothing copied, if that is not inside.
    #[must_use]
    pub fn write(&self, offset: usize, from: &[u8]) -> Option<()> {
        self.mapping.write(offset, from)
    }

    /// Prefetches bytes that will be read soon; no effect if they are not inside.
    pub fn fetch(&self, offset: usize, len: usize) {
        self.mapping.fetch(offset, len);
    }

    /// Prefetches bytes that will be written soon; no effect if they are not inside.
    pub fn fetch_to_write(&self, offset: usize, len: usize) {
        self.mapping.fetch_to_write(offset, len);
    }

    /// The start address in this process.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.mapping
            .at(0, 0)
            .expect("nothing is inside of anything")
    }

    /// The mapping itself, for protocols of this crate that know which bytes belong to this process.
    pub(crate) fn mapping(&mut self) -> &mut Mapping {
        &mut self.mapping
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn seal(file: BorrowedFd<'_>, seals: libc::c_int) -> io::Result<()> {
    // SAFETY: F_ADD_SEALS takes a number.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })
}

/// Whether a file is on hugetlbfs. The block size does not tell: it is 2 MiB too where ordinary memory may get huge
/// pages transparently.
fn is_huge(file: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: a statfs is plain numbers, for which zero is valid.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: fstatfs writes a statfs, which the pointer is to.
    check(unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut status) })?;
    Ok(status.f_type == libc::HUGETLBFS_MAGIC)
}

fn invalid() -> io::Error {
    io::Error::from_raw_os_error(libc::EINVAL)
}

#[cfg(test)]
mod tests;
