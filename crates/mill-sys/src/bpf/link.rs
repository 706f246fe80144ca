//! Programs at interfaces, by a descriptor that holds them there: with the last of its copies the program is gone.

use super::program::{ATTACH_XDP, Program};
use super::{Attributes, BpfError, Command, number_of};
use std::os::fd::{AsFd, OwnedFd};

/// Where in the kernel a program sees the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the interface's driver, before the kernel makes a packet of its own of the frame. Not every driver can.
    Native,
    /// In the kernel's stack, which every interface has: slower, as packets are made and copied first.
    Generic,
}

/// Attaches a program to an interface. `EBUSY` if it has one already, `EOPNOTSUPP` if its driver can't in that
/// mode, `EINVAL` if there is no such interface in the caller's network namespace.
pub fn attach(program: &Program, interface: u32, mode: Mode) -> Result<OwnedFd, BpfError> {
    LINK_CREATE.open(&mut Create {
        prog_fd: number_of(&program.as_fd()),
        target_ifindex: interface,
        attach_type: ATTACH_XDP,
        flags: match mode {
            Mode::Native => XDP_FLAGS_DRV_MODE,
            Mode::Generic => XDP_FLAGS_SKB_MODE,
        },
    })
}

/// The beginning of what BPF_LINK_CREATE takes.
#[repr(C)]
struct Create {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

// SAFETY: it points to nothing.
unsafe impl Attributes for Create {}

const LINK_CREATE: Command = Command::new(28, "BPF_LINK_CREATE");

// Of the kernel's if_link.h.
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
