//! Mapped memory of any descriptor: memfds, rings of sockets, BPF arrays (mmap(2), MAP_SHARED).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

/// A mapping, unmapped on drop. Other processes may write to the memory at any time, but no other thread through this
/// value: it is `Send`, not `Sync`.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and this value alone unmaps it.
unsafe impl Send for Mapping {}

/// An aligned view of a number in the memory, or of several that follow one another.
macro_rules! atomic {
    ($name:ident, $type:ty) => {
        /// `None` if it is not inside, or not aligned.
        #[inline]
        pub(crate) fn $name(&self, offset: usize) -> Option<&$type> {
            if !offset.is_multiple_of(align_of::<$type>()) {
                return None;
            }
            let at = self.at(offset, size_of::<$type>())?.cast::<$type>();
            // SAFETY: inside the mapping, which is aligned to a page and lives as long as the borrow of `self`; any
            // bytes are valid; other writers write atomically, or are not part of this program.
            Some(unsafe { at.as_ref() })
        }
    };
}

impl Mapping {
    /// Maps `len` bytes of `file` from `offset` on; `is_populated` allocates the pages at once.
    pub(crate) fn new(
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        is_populated: bool,
    ) -> io::Result<Self> {
        let populate = if is_populated { libc::MAP_POPULATE } else { 0 };
        Self::map(
            file,
            (offset, len),
            libc::PROT_READ | libc::PROT_WRITE,
            populate,
        )
    }

    /// Maps the first `len` bytes of `file`, which nothing may be written to, and of which only the kernel may read what another
    /// process can cut off.
    pub(crate) fn read_only(file: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        Self::map(file, (0, len), libc::PROT_READ, 0)
    }

    fn map(
        file: BorrowedFd<'_>,
        (offset, len): (u64, usize),
        protection: libc::c_int,
        populate: libc::c_int,
    ) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset)
            .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: the kernel chooses the address, so that nothing that is mapped already is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                protection,
                libc::MAP_SHARED | populate,
                file.as_raw_fd(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("nothing is mapped at zero");
        Ok(Self { start, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    atomic!(atomic_u16, AtomicU16);
    atomic!(atomic_u32, AtomicU32);
    atomic!(atomic_u64, AtomicU64);
    atomic!(four_atomic_u32, [AtomicU32; 4]);

    /// Copies out; `None`, and nothing copied, if that is not inside.
    pub(crate) fn read(&self, offset: usize, to: &mut [u8]) -> Option<()> {
        let from = self.at(offset, to.len())?;
        // SAFETY: `to.len()` bytes from there on are inside the mapping, and a slice of Rust's never overlaps it: those of
        // `bytes` borrow `self` mutably.
        unsafe { from.copy_to_nonoverlapping(NonNull::from(&mut *to).cast(), to.len()) };
        Some(())
    }

    /// Copies in; `None`, and nothing copied, if that is not inside.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> Option<()> {
        let to = self.at(offset, from.len())?;
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(from).cast(), from.len()) };
        Some(())
    }

    /// Prefetches bytes for reading; no effect if they are not inside.
    pub(crate) fn fetch(&self, offset: usize, len: usize) {
        self.each_line(offset, len, |line| {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a prefetch has no visible effect, and every x86-64 processor has it.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = line;
        });
    }

    /// Prefetches bytes for writing, which takes the cache lines away from other cores.
    pub(crate) fn fetch_to_write(&self, offset: usize, len: usize) {
        self.each_line(offset, len, |line| {
            #[cfg(target_arch = "x86_64")]
            // The intrinsic becomes a prefetch for reading unless the whole program is built for processors with this
            // instruction.
            // SAFETY: as above; a processor without this kind takes it for nothing.
            unsafe {
                std::arch::asm!(
                    "prefetchw byte ptr [{line}]",
                    line = in(reg) line.as_ptr(),
                    options(nostack, preserves_flags, readonly)
                );
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = line;
        });
    }

    fn each_line(&self, offset: usize, len: usize, act: impl Fn(NonNull<u8>)) {
        let Some(start) = self.at(offset, len) else {
            return;
        };
        for line in (0..len).step_by(CACHE_LINE_BYTES) {
            // SAFETY: below `len`, so inside the mapping.
            act(unsafe { start.add(line) });
        }
    }

    /// The bytes themselves. By the caller's protocol no one else writes them meanwhile; a peer that does so
    /// nevertheless corrupts only their contents, as long as everything that memory accesses depend on is copied before
    /// it is checked.
    pub(crate) fn bytes(&mut self, offset: usize, len: usize) -> Option<&mut [u8]> {
        let start = self.at(offset, len)?;
        let mut bytes = NonNull::slice_from_raw_parts(start, len);
        // SAFETY: inside the mapping, initialised as all memory from the kernel is, and borrowed mutably with `self`.
        Some(unsafe { bytes.as_mut() })
    }

    /// The address of `len` bytes from `offset` on.
    #[inline]
    pub(crate) fn at(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: `offset` is at most the mapping's length.
        Some(unsafe { self.start.add(offset) })
    }
}

/// The cache line of all current server processors; with other lines some bytes are prefetched twice or not at all.
const CACHE_LINE_BYTES: usize = 64;

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `new` has made, and no borrow of it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}
