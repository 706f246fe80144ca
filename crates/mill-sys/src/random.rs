//! Randomness for seeds and keys.

use std::io;

/// Eight bytes from the kernel's generator.
pub fn seed() -> io::Result<u64> {
    let mut bytes = [0_u8; 8];
    fill(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Fills `bytes` from the kernel's generator, for keys that others must not guess.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..)
        && !rest.is_empty()
    {
        // SAFETY: pointer and length describe `rest`, which is ours through the call.
        let count = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(count) {
            Ok(count) => done += count,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// The kernel's random id of this boot (random(4)): the same for all processes until the next boot, known to all users
/// of this machine and to no other machine. `None` without /proc.
pub fn boot_id() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits = text.trim().replace('-', "");
    u128::from_str_radix(&digits, 16)
        .ok()
        .map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_has_one_id() {
        let id = boot_id();
        assert!(id.is_some_and(|id| id != [0; 16]));
        assert_eq!(id, boot_id());
    }

    #[test]
    fn two_fillings_differ_and_leave_nothing_as_it_was() {
        let mut filled = [[0_u8; 300]; 2];
        for bytes in &mut filled {
            fill(bytes).unwrap();
        }
        assert_ne!(filled[0], filled[1]);
        // Sixteen zeros occur once in 2^128 runs.
        assert!(
            filled[0]
                .chunks(16)
                .all(|chunk| chunk.iter().any(|byte| *byte != 0))
        );
        fill(&mut []).unwrap();
    }
}
