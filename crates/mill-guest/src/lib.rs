//! Virtual machines of QEMU that run what this machine runs: a kernel of their own over this machine's files.
//!
//! A guest boots from an initial file system that is made here ([`initramfs`]): a shell, modules of the kernel, and a
//! script. The script mounts this machine's root directory, read-only by 9p, under a layer in memory, so that every
//! program, library and configuration of this machine is at the same path in the guest, and nothing that the guest
//! writes reaches a disk. Then either a job runs, whose output goes to the serial console, or the guest waits for
//! commands by ssh.
//!
//! Nothing is started here: a guest is the command line of QEMU, for whatever starts and ends processes.
//!
//! Invariants: no process outlives its start here (programs that decompress modules end before a function returns);
//! a guest can write nothing but its own memory and what its console goes to, unless it has QEMU's monitor, and with
//! it all of QEMU's rights.
#![forbid(unsafe_code)]

/// The archive that the kernel unpacks.
mod archive;
/// Where a kernel and its modules are.
mod kernel;
/// Which modules, in which order.
mod modules;

/// What the kernel unpacks and runs.
pub mod initramfs;
/// The command line of QEMU.
pub mod machine;

pub use kernel::Kernel;
