//! Memory as numbers: a memfd that one process maps and writes, and that others read like a file.

use super::mapping::Mapping;
use crate::passing;
use crate::process::check;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;

/// Makes a memfd of `count` numbers, zeroed; `name` is only for /proc. Pages are allocated when they are accessed. Its
/// length is sealed.
pub fn create(name: &str, count: usize) -> io::Result<File> {
    let file = passing::sealable_memory_file(&CString::new(name)?)?;
    file.set_len(bytes(count)? as u64)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: F_ADD_SEALS takes a number.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

/// Maps a file of [`create`] until the process ends. The descriptor is not needed afterwards.
pub fn map(file: &File, count: usize) -> io::Result<&'static [AtomicU64]> {
    let len = bytes(count)?;
    let can_shrink = seals_of(file.as_fd()) & libc::F_SEAL_SHRINK == 0;
    if can_shrink || file.metadata()?.len() < len as u64 {
        // An access beyond the file's end would kill the process.
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // Leaked, so that it is never unmapped.
    let mapping = Box::leak(Box::new(Mapping::new(file.as_fd(), 0, len, false)?));
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    let start = mapping.at(0, len).ok_or_else(invalid)?;
    let words = std::ptr::NonNull::slice_from_raw_parts(start.cast::<AtomicU64>(), count);
    // SAFETY: `count` numbers are inside the mapping, which begins at a page and stays for ever; any bytes are numbers;
    // other writers write atomically.
    Ok(unsafe { words.as_ref() })
}

/// A copy of the numbers, up to the end of the file.
pub fn copy(file: &File, count_max: usize) -> io::Result<Vec<u64>> {
    let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut copied = vec![0; len.min(bytes(count_max)?)];
    file.read_exact_at(&mut copied, 0)?;
    let (numbers, _) = copied.as_chunks::<8>();
    Ok(numbers
        .iter()
        .map(|number| u64::from_ne_bytes(*number))
        .collect())
}

fn seals_of(file: BorrowedFd<'_>) -> libc::c_int {
    // SAFETY: F_GET_SEALS takes no argument.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    seals.max(0)
}

fn bytes(count: usize) -> io::Result<usize> {
    let bytes = count
        .checked_mul(size_of::<u64>())
        .filter(|bytes| *bytes > 0);
    bytes.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_is_written_by_the_mapping_is_read_from_the_file() {
        let file = create("words", 1000).unwrap();
        let words = map(&file, 1000).unwrap();
        assert_eq!(words.len(), 1000);
        for (word, value) in words.iter().zip(7..) {
            word.store(value, Ordering::Relaxed);
        }
        let copied = copy(&file, usize::MAX >> 3).unwrap();
        assert!(copied.iter().copied().eq(7..1007));
        assert_eq!(copy(&file, 2).unwrap(), [7, 8]);
        assert!(file.set_len(8).is_err(), "it is sealed");
        assert!(map(&file, 1001).is_err());
    }

    #[test]
    fn a_file_that_can_shrink_is_not_mapped() {
        let file = passing::memory_file(c"words").unwrap();
        file.set_len(4096).unwrap();
        assert!(map(&file, 512).is_err());
        assert!(create("words", 0).is_err());
    }
}
