//! Links that carry frames: what lies between the stack and the operating system.
//!
//! Place in the walk: below mill-stack, which asks for bursts of frames through [`mill_stack::link::Link`]; above
//! mill-sys, which makes the system calls.
//!
//! Over AF_XDP the stack works on an interface that the kernel goes on using. A frame's way:
//!
//! ```text
//! vlan.rs               in a virtual network: frames have a tag below any.rs, and none above it
//! steering/program.rs   the XDP program: frames of served flows go to the socket, all others to the kernel
//! af_xdp.rs             receive: ring to burst, no system call, no copy (mill-sys xsk.rs); joins frames of several pieces
//! interface.rs          addresses, routes, MTU and neighbours, as network/monitor.rs reports them
//! (mill-stack)          a reply goes to the Ethernet address that its request came from
//! af_xdp.rs             flush: one sendto a turn, or for 64 frames, where the kernel copies; takes back what was sent
//! outlet.rs             what is longer than some frames leaves as one segment by a packet socket, and the device cuts it
//! network/probe.rs      makes the kernel resolve a neighbour that is not known
//! ```
//!
//! | what | the master (root) | the worker process (no rights) |
//! | --- | --- | --- |
//! | packet memory, a memfd | makes it, keeps a descriptor | maps it |
//! | sockets of the queues (`attach/af_xdp/plan.rs`) | makes and binds (CAP_NET_RAW), keeps descriptors | each thread maps its own rings |
//! | program, table of sockets, link to the interface | loads, attaches (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN) | has no descriptor of them |
//! | table of served ports, counters | makes them | maps them; serving a port is one store |
//! | netlink, sockets that probe neighbours | reads the interface once | opens its own |
//!
//! A worker process that dies therefore leaves memory and rings in order for the next one (mill-sys `xsk/recovery.rs`);
//! with the master the link is gone, and all frames are the kernel's again. At any time the kernel keeps every other port
//! and protocol, ARP and neighbour discovery, ICMP except errors about what the stack has sent, multicast and broadcast,
//! frames of other virtual networks, IPv6 with long or unusual chains of extension headers, later fragments, other queues, loopback, and the connections that it had
//! on a port before the port was served (`interface/kernel_flows.rs`).
//!
//! When the binary is upgraded (USR2), two processes have the device and one of them uses it:
//!
//! ```text
//! attach/inherited_device.rs  what the old master exports, and what the new one makes of it
//! handover.rs                 which process owns the device: a file lock that the kernel releases, requests, messages
//! standby.rs                  the link of a process that waits for the device, or works through another process
//! handover/owner.rs           the owner's side: frames of the others, requests for the device
//! handover/directory.rs       which process has a flow
//! interface/passing.rs        an interface goes from one to the other between two turns (xsk/recovery.rs)
//! movable.rs                  a TAP device or a memif does
//! relay.rs                    frames between two processes, both ways, in shared memory
//! partitions.rs               all of this several times, where each process is to have queues of its own
//! steering/table.rs           what the other process serves stays served until it has ended (`Table::inherit`)
//! steering/table/opened.rs    ports of outgoing connections, which each process opens at all queues, whichever process has them
//! ```
//!
//! The owner has a way to each other process. One whose owner has ended takes the device if it has none, else asks the next owner for
//! a way; no master decides anything, and any process may be killed at any moment. Which process has a flow stands in shared memory
//! (`handover/directory.rs`): a segment of no connection or listener here is given to that process, and is reset where there is none.
//! As long as a process is the only one, it lists nothing.
//!
//! Several workers of a process each have queues, and a directory of their own for them. A frame that a worker does not know goes, in
//! this order (`any.rs`), to the process that has listed its flow there, and to the other workers of this process (`forwarding.rs`),
//! each of which looks into its own.
//!
//! Invariants:
//! - After start-up nothing is allocated for a frame, and nothing is called through `dyn`.
//! - Frames are opaque here, except for checksums, segmentation, and the steering program, which reads headers. Where
//!   that program is in doubt, the frame is the kernel's. What a memif's peer writes is checked after it was copied.
//! - A full device is reported as full, and every lost frame is counted.
#![forbid(unsafe_code)]

/// A TAP device: a frame is a read or a write, up to 64 KiB long.
pub mod tap;

/// Memory shared with another process: no kernel in between.
pub mod memif;

/// A port of DPDK in this process.
pub mod dpdk;

/// A queue of an interface by AF_XDP.
pub mod af_xdp;

/// The way out for segments that the device cuts.
pub mod outlet;

/// The queues of an interface that one worker has.
pub mod queues;

/// Hands frames to the worker that has their connection.
pub mod forwarding;

/// An interface of the kernel: frames, steering, and the kernel's view of it.
pub mod interface;

/// Frames between a process and its successor.
pub mod relay;

/// Handover of a device between processes.
pub mod handover;

/// What a host has asked of its link.
mod wanted;

/// The link of a process while another one owns the device.
pub mod standby;

/// A TAP device or a memif that goes from process to process.
pub mod movable;

/// An interface whose queues several processes have.
pub mod partitions;

/// What processes that share a device know of each other.
pub mod process_group;

/// Local ports of connections that several processes open.
pub mod port_blocks;

/// The connections of a process, for what tells their peers when it is killed.
pub mod ledger;

/// A link without a device.
pub mod nowhere;

/// The header before each frame of a TAP device.
mod vnet;

/// The memory of received frames.
mod frames;

/// Records a link's frames for tcpdump and Wireshark.
pub mod pcap;

/// The tag of a virtual network.
pub mod vlan;

/// Completes checksums in captured frames.
mod checksum;

/// Segments TCP for peers without offload.
mod segment;

/// An impaired wire: drops, reorders, duplicates and corrupts frames.
pub mod impair;

/// The link of a TAP device or a memif itself.
pub mod direct;

/// The links, one variant for each kind of device.
pub mod device_link;

/// Any of them as one type, with or without a capture.
pub mod any;

/// What an interface offers to AF_XDP.
pub mod card;

/// What the kernel knows of an interface.
pub mod network;

/// Which frames of an interface go to the stack: an XDP program.
pub mod steering;

/// The capabilities of the calling thread.
mod rights;

/// The text of `--stack`.
pub mod specification;

/// Makes the device that a specification describes.
pub mod attach;

/// A device as a program has it: an attachment for each worker, and what holds it.
pub mod attachment;

pub use any::AnyLink;

/// A link over a pair of sockets instead of a device.
#[cfg(test)]
mod pair;
