//! bpf(2): maps, XDP programs, and their attachment to interfaces (the kernel's include/uapi/linux/bpf.h and
//! Documentation/bpf).
//!
//! Each command has a structure of its own, which is the beginning of the kernel's `union bpf_attr`: the kernel takes
//! the rest as zero. All of this needs privileges, except the use of a map that is mapped into memory.

use std::fmt;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Maps: tables shared by programs and processes.
pub mod map;

/// Programs: loading, and test runs.
pub mod program;

/// Attachment of programs to interfaces.
pub mod link;

/// One instruction: `struct bpf_insn`. A 64-bit immediate takes two.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// Instruction class and operation.
    pub code: u8,
    /// Two registers of four bits each; see [`Instruction::registers`].
    pub registers: u8,
    /// Of a memory access in bytes, or of a jump in instructions, counted from the following one.
    pub offset: i16,
    pub immediate: i32,
}

const _: () = assert!(size_of::<Instruction>() == 8);

impl Instruction {
    /// The register byte: C bit fields, whose order depends on the byte order.
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
    /// The command's name in bpf(2).
    pub command: &'static str,
    pub error: io::Error,
    /// The verifier's log of a program that was refused; otherwise empty.
    pub log: String,
}

impl fmt::Display for BpfError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "bpf({}): {}", self.command, self.error)?;
        // The verifier's last lines give the reason; the others show the path to it.
        match self.log.trim_end().rsplit('\n').nth(1) {
            Some(line) => write!(formatter, ": {line}"),
            None => Ok(()),
        }
    }
}

/// Without the verifier's log, which may have hundreds of lines.
impl fmt::Debug for BpfError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl std::error::Error for BpfError {}

/// A command, with its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    number: libc::c_int,
    name: &'static str,
}

impl Command {
    pub(crate) const fn new(number: libc::c_int, name: &'static str) -> Self {
        Self { number, name }
    }

    /// Runs the command. `T` is one of this module's structures; each pointer in it refers to memory that outlives the
    /// call and is as long as the structure says.
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

    /// Runs a command that makes a descriptor; the kernel marks it close-on-exec.
    pub(crate) fn open<T: Attributes>(self, attributes: &mut T) -> Result<OwnedFd, BpfError> {
        let number = self.run(attributes)?;
        // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
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
/// All that it points to has to be valid during the call, with the lengths that it gives, and writable where the
/// command writes.
pub(crate) unsafe trait Attributes {}

/// An object's name: up to 15 bytes of letters, digits, `_` and `.`, and a NUL (BPF_OBJ_NAME_LEN).
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

/// A descriptor's number, in the type of the structures.
pub(crate) fn number_of(descriptor: &impl std::os::fd::AsRawFd) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).expect("an open descriptor is not negative")
}

#[cfg(test)]
mod tests;
