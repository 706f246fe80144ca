//! The only crate with `unsafe` and `libc`: thin, safe wrappers of system calls.
//!
//! Invariants: every descriptor made here is close-on-exec and owned; sockets go through libc's symbols, so that
//! a preloaded stack can replace them; no policy is here.

/// An allocator that counts.
pub mod allocation;

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

/// Sleep until another thread changes a number.
pub mod futex;

/// Memory barriers on all threads of the process.
pub mod membarrier;

/// A lock that its usual thread takes without atomic operations.
pub mod biased_lock;

/// The clocks.
pub mod clock;

/// Randomness for seeds.
pub mod random;

/// Processes: forking, waiting, signalling.
pub mod process;

/// Starting programs with a clean signal mask and process group.
pub mod program;

/// Network namespaces of threads.
pub mod namespace;

/// The text that `ps` shows for a process.
pub mod title;

/// Signals read from a descriptor.
pub mod signal;

/// Datagrams that carry descriptors.
pub mod passing;

/// UNIX sockets with connections and whole datagrams.
pub mod seqpacket;

/// Descriptors that are readable after a signal.
pub mod eventfd;

/// Frames by an interface, segmented by its device.
pub mod packet;

/// Timers that are descriptors.
pub mod timerfd;

/// Memory that several processes map.
pub mod memory;

/// Descriptor tables and standard streams.
pub mod descriptor;

/// Users and groups, and giving up privileges.
pub mod account;

/// Whole IP packets.
pub mod raw_ip;

/// Limits of a process.
pub mod rlimit;

/// The CPU time that threads and processes have used.
pub mod usage;

/// The CPUs that a thread may run on.
pub mod affinity;

/// The local time.
pub mod local_time;

/// Network interfaces: their addresses and settings.
pub mod interface;

/// Settings of interfaces that only rtnetlink takes.
pub mod netlink;

/// TAP devices: interfaces whose wire is a descriptor.
pub mod tap;

/// BPF: programs that decide about frames.
pub mod bpf;

/// AF_XDP: queues of interfaces as rings and memory.
pub mod xsk;

/// DPDK's libraries, found at run time: ports and their frames.
pub mod dpdk;

/// The size and mode of a terminal.
pub mod terminal;
