//! preadv2(2): reading only what is in the page cache.

use super::offset_of;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Reads at `offset` as far as the bytes are in the page cache (`RWF_NOWAIT`); 0 at the end of the file. EAGAIN: the first
/// of them is not. EOPNOTSUPP: the file system cannot tell. ENOSYS: the kernel has no such call.
pub fn read_cached_at(file: BorrowedFd<'_>, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let offset = offset_of(offset)?;
    let piece = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: the pointer is to one piece, which describes `buffer`; both are ours through the call.
    let count = unsafe {
        libc::preadv2(
            file.as_raw_fd(),
            &raw const piece,
            1,
            offset,
            libc::RWF_NOWAIT,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
