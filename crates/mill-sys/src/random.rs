//! Randomness for seeds.

use std::io;

/// Eight bytes from the kernel's generator.
pub fn seed() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    // SAFETY: pointer and length describe `bytes`, which lives through the call.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count == 8 {
        Ok(u64::from_ne_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}
