//! The kernel's virtual machine: maps, programs for received frames, and where they are attached (bpf(2), the kernel's
//! include/uapi/linux/bpf.h and Documentation/bpf).
//!
//! Each command has a structure of its own, the beginning of the kernel's `union bpf_attr`: the kernel takes what is left
//! out for zero. All of it needs rights but the use of a map that is mapped.

use std::fmt;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Maps: tables that programs and processes share.
pub mod map;

/// Programs: loaded, checked by the kernel, and tried out.
pub mod program;

/// Programs at interfaces.
pub mod link;

/// One instruction as the kernel takes it: `struct bpf_insn`. An immediate of 64 bits takes two.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Class and operation.
    pub code: u8,
    /// Two registers of four bits each; see [`Instruction::registers`].
    pub registers: u8,
    /// Of memory in bytes, or of a jump in instructions, counted from the following one.
    pub offset: i16,
    pub immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8);

impl Instruction {
    /// The byte of registers: bit fields of C, whose order follows the machine's.
    pub const fn registers(destination: u8, source: u8) -> u8 {
        if cfg!(target_endian = "little") {
            destination | source << 4
        } else {
            destination << 4 | source
        }
    }
}

/// A command that the kernel has refused.
pub struct BpfError {
    /// As bpf(2) calls it.
    pub command: &'static str,
    pub error: io::Error,
    /// What the kernel's verifier said of a program that it has refused; else empty.
    pub log: String,
}

impl fmt::Display for BpfError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "bpf({}): {}", self.command, self.error)?;
        // The verifier's last lines say what was wrong; those before show how it got there.
        match self.log.trim_end().rsplit('\n').nth(1) {
            Some(line) => write!(formatter, ": {line}"),
            None => Ok(()),
        }
    }
}

/// As for people: a verifier's log is hundreds of lines.
impl fmt::Debug for BpfError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for BpfError {}

/// A command with its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    number: libc::c_int,
    name: &'static str,
}

impl Command {
    pub(crate) const fn new(number: libc::c_int, name: &'static str) -> Self {
        Self { number, name }
    }

    /// Carries the command out. `T` is one of this module's structures, and each pointer in it is to memory that outlives
    /// the call and is as long as the structure says.
    pub(crate) fn run<T: Attributes>(self, attributes: &mut T) -> Result<i32, BpfError> {
        let size = size_of::<T>();
        // SAFETY: the pointer and size describe the structure, whose own pointers its maker vouches for.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                self.number,
                std::ptr::from_mut(attributes),
                size,
            )
        };
        if result < 0 {
            return Err(self.failed(io::Error::last_os_error()));
        }
        Ok(i32::try_from(result).unwrap_or(i32::MAX))
    }

    /// Carries out a command that makes a descriptor; the kernel has it closed on exec.
    pub(crate) fn open<T: Attributes>(self, attributes: &mut T) -> Result<OwnedFd, BpfError> {
        let number = self.run(attributes)?;
        // SAFETY: the kernel just gave us this descriptor, nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(number) })
    }

    pub(crate) fn failed(self, error: io::Error) -> BpfError {
        BpfError {
            command: self.name,
            error,
            log: String::new(),
        }
    }
}

/// The structure of a command: plain numbers without gaps.
///
/// # Safety
/// What it points to has to be there through the call, as long as its lengths say, and to be writable where the command
/// writes.
pub(crate) unsafe trait Attributes {}

/// What names in the kernel are: 15 bytes of letters, digits, `_` and `.`, and a NUL (BPF_OBJ_NAME_LEN).
pub(crate) fn name_of(text: &str) -> [u8; 16] {
    let mut name = [0; 16];
    let bytes = text.bytes().filter(|byte| {
        let one = *byte;
        one.is_ascii_alphanumeric() || one == b'_' || one == b'.'
    });
    for (to, from) in name[..15].iter_mut().zip(bytes) {
        *to = from;
    }
    name
}

/// A descriptor's number, as the structures want it.
pub(crate) fn number_of(descriptor: &impl std::os::fd::AsRawFd) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).expect("an open descriptor is not negative")
}

#[cfg(test)]
mod tests;
