//! Files as memory that the kernel reads: mmap(2), read-only.

use crate::memory::mapping::Mapping;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The beginning of a file, mapped. Its bytes are given out as an address alone, for system calls: another program may make the
/// file shorter, and then a read of this process's own would end it (SIGBUS), while the kernel's is an error (EFAULT).
#[derive(Debug)]
pub struct FileMapping {
    mapping: Mapping,
}

/// How many mappings of files a process has at most. The kernel allows 65530 of all kinds (vm.max_map_count), which memory of the
/// program's own needs as well.
pub const FILE_MAPPINGS_MAX: usize = 8192;

static COUNT: AtomicUsize = AtomicUsize::new(0);

impl FileMapping {
    /// Maps `len` bytes of `file`. `ENOMEM` with [`FILE_MAPPINGS_MAX`] mappings, `ENODEV` if the file system has no such files.
    pub fn new(file: BorrowedFd<'_>, len: usize) -> io::Result<Self> {
        if COUNT.fetch_add(1, Ordering::Relaxed) >= FILE_MAPPINGS_MAX {
            COUNT.fetch_sub(1, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        match Mapping::read_only(file, len) {
            Ok(mapping) => Ok(Self { mapping }),
            Err(error) => {
                COUNT.fetch_sub(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Where `len` bytes of the file from `offset` on lie; `None` if they are not mapped. Only for the kernel to read, and as long
    /// as this value lives.
    pub fn address(&self, offset: u64, len: usize) -> Option<usize> {
        let start = self.mapping.at(usize::try_from(offset).ok()?, len)?;
        Some(start.addr().get())
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// writev(2) of two pieces, and behind them of `len` bytes at an address of [`FileMapping::address`]. `EFAULT` if the file has become
/// shorter: a socket or device of frames has sent nothing then.
pub fn write_mapped(
    descriptor: BorrowedFd<'_>,
    head: [IoSlice<'_>; 2],
    (address, len): (usize, usize),
) -> io::Result<()> {
    let [first, second] = head.each_ref().map(|bytes| libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    });
    let payload = libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address),
        iov_len: len,
    };
    let pieces = [first, second, payload];
    // SAFETY: the kernel only reads what the pieces describe: two slices that outlive the call, and memory of which it finds out
    // itself whether it can be read.
    let written = unsafe { libc::writev(descriptor.as_raw_fd(), pieces.as_ptr(), 3) };
    match written {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    /// A file of so many bytes, without a name.
    fn file(bytes: &[u8]) -> File {
        use std::io::Write;
        let path = std::env::temp_dir().join(format!("mill-mapping-{}", std::process::id()));
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    #[test]
    fn the_kernel_reads_a_mapped_file_and_says_when_it_has_become_shorter() {
        let bytes: Vec<u8> = (0..=250).cycle().take(10_000).collect();
        let file = file(&bytes);
        let mapping = FileMapping::new(file.as_fd(), bytes.len()).unwrap();
        assert_eq!(mapping.address(0, 10_001), None);
        assert_eq!(mapping.address(u64::MAX, 1), None);
        let (mut read_end, write_end) = io::pipe().unwrap();
        let address = mapping.address(5000, 3000).unwrap();
        let head = [IoSlice::new(b"he"), IoSlice::new(b"ad")];
        write_mapped(write_end.as_fd(), head, (address, 3000)).unwrap();
        let mut got = vec![0; 3004];
        read_end.read_exact(&mut got).unwrap();
        assert_eq!((&got[..4], &got[4..]), (&b"head"[..], &bytes[5000..8000]));
        file.set_len(4096).unwrap();
        let empty = [IoSlice::new(b""), IoSlice::new(b"")];
        let error = write_mapped(write_end.as_fd(), empty, (address, 3000)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }
}
