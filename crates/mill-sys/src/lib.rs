//! The one home of `unsafe` and `libc`: thin, safe wrappers of system calls, in Rust's types.
//!
//! Invariants: every descriptor made here is close-on-exec and owned; sockets go through libc's symbols, so that
//! a preloaded stack can sit underneath; nothing here decides anything.

/// Making a listening socket.
pub mod listener;

/// Socket addresses between Rust's types and the kernel's.
pub mod address;

/// Calls on connected sockets.
pub mod socket;

/// UDP sockets: batches of datagrams.
pub mod datagram;

/// epoll(7).
pub mod epoll;

/// Opening and examining files for serving.
pub mod file;

/// Locks on whole files.
pub mod lock;

/// The clocks.
pub mod clock;

/// Randomness for seeds.
pub mod random;

/// Processes: forking, waiting, signalling.
pub mod process;

/// Programs that are started: what they shall not inherit.
pub mod program;

/// Network namespaces of threads.
pub mod namespace;

/// What `ps` shows of a process.
pub mod title;

/// Signals as something to read.
pub mod signal;

/// Datagrams that carry descriptors.
pub mod passing;

/// UNIX sockets with connections and whole datagrams.
pub mod seqpacket;

/// Descriptors that are readable once somebody has signalled.
pub mod eventfd;

/// Timers that are descriptors.
pub mod timerfd;

/// Memory that several processes map.
pub mod memory;

/// Descriptor tables and standard streams.
pub mod descriptor;

/// Users and groups, and giving up privileges.
pub mod account;

/// Limits of a process.
pub mod rlimit;

/// What threads and processes have used of the CPUs.
pub mod usage;

/// On which CPUs a thread may run.
pub mod affinity;

/// Civil time where the machine is.
pub mod local_time;

/// Network interfaces: their addresses and settings.
pub mod interface;

/// Settings of interfaces that only rtnetlink takes.
pub mod netlink;

/// TAP devices: interfaces whose wire is a descriptor.
pub mod tap;

/// The kernel's virtual machine: programs that decide about frames.
pub mod bpf;

/// AF_XDP: queues of interfaces as rings and memory.
pub mod xsk;

/// What a terminal says of itself.
pub mod terminal;
