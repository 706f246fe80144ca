//! Attachment of programs to interfaces by a descriptor: the program is detached when the last duplicate is closed.

use super::program::{ATTACH_XDP, Program};
use super::{Attributes, BpfError, Command, number_of};
use std::os::fd::{AsFd, OwnedFd};

/// Where in the kernel a program sees frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the interface's driver, before the kernel allocates a packet. Not every driver supports it.
    Native,
    /// In the kernel's stack, for every interface: slower, as packets are allocated and copied first.
    Generic,
}

/// Attaches a program to an interface. `EBUSY` if it has one already, `EOPNOTSUPP` if its driver does not support the
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

/// The beginning of BPF_LINK_CREATE's attributes.
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

// From linux/if_link.h.
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
