//! Links that carry frames: what lies between the stack and the operating system.
//!
//! Place in the walk: below mill-stack, which asks for bursts of frames through [`mill_stack::link::Link`]; above
//! mill-sys, which makes the system calls.
//!
//! Invariants:
//! - After start-up nothing is allocated for a frame, and nothing is called through `dyn`.
//! - What frames hold is nobody's business here, but for finding a checksum in them.
//! - A device that is full says so, and every frame that is lost is counted.
#![forbid(unsafe_code)]

/// A TAP device: a frame is a read or a write, up to 64 KiB long.
pub mod tap;

/// Memory shared with another process: no kernel in between.
pub mod memif;

/// A queue of an interface by AF_XDP.
pub mod af_xdp;

/// The queues of an interface that one worker has.
pub mod queues;

/// Frames for a connection that another worker has.
pub mod forwarding;

/// An interface of this machine: frames, steering, and what the kernel knows.
pub mod interface;

/// Frames between two processes that share a device.
pub mod relay;

/// Who has a device, of several processes that could.
pub mod handover;

/// What a host wants of its link.
mod wanted;

/// The link of a process while another one has the device.
pub mod standby;

/// No device at all.
pub mod nowhere;

/// What stands before each frame of a TAP device.
mod vnet;

/// The memory of received frames.
mod frames;

/// Records what passes a link, for tcpdump and Wireshark.
pub mod pcap;

/// Completes checksums, for those who look at frames.
mod checksum;

/// Cuts segments, for peers that take no large ones.
mod segment;

/// A bad wire: loses, swaps, doubles and spoils frames.
pub mod impair;

/// The links, one variant for each kind of device.
pub mod device_link;

/// Any of them as one type, recorded or not.
pub mod any;

/// What the kernel knows of an interface.
pub mod network;

/// Which frames of an interface are ours: a program in the kernel.
pub mod steering;

/// What the calling thread may do.
mod rights;

/// What `--stack` says.
pub mod specification;

/// Makes the device that a specification asks for.
pub mod attach;

pub use any::AnyLink;

/// A link over a pair of sockets instead of a device.
#[cfg(test)]
mod pair;
