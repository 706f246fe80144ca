//! The stack of our own bypassing the kernel: over AF_XDP on an interface of this machine, and over memif.
//!
//! Every test runs on a thread with network namespaces of its own, one for the server and one for its clients, joined
//! by a veth pair. They vanish with the thread and the processes that it has started, whatever happens. Without the
//! right to make them (CAP_SYS_ADMIN) the tests print that they were skipped.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "a test that can't run says so")]

/// A thread with a network namespace of its own.
#[expect(dead_code, reason = "tests over TAP devices need more of it")]
#[path = "../stack/namespace.rs"]
mod namespace;

/// The binary, serving.
#[expect(dead_code, reason = "tests over TAP devices need more of it")]
#[path = "../stack/server.rs"]
mod server;

/// nginx on kernel sockets.
#[path = "../stack/nginx.rs"]
mod nginx;

/// Requests of one connection.
#[expect(dead_code, reason = "tests of the processes need more of it")]
#[path = "../process/client.rs"]
mod client;

/// Two namespaces and the link between them.
mod topology;

/// The same conversations over every kind of link.
mod conversations;

/// Common clients: curl, wrk, ab, Python.
mod tools;

/// Other traffic on the same interface.
mod others;

/// IPv6 with extension headers.
mod extension_headers;

/// Virtual networks.
mod vlan;

/// Long segments that leave whole.
mod long_segments;

/// Paths with a smaller MTU than the interface.
mod path_mtu;

/// A server with TLS and HTTP/2.
#[path = "../stack/secured.rs"]
mod secured;

/// TLS and HTTP/2.
mod tls;

/// `stream` over the stack.
mod stream;

/// Reloads under load.
mod reload;

/// The binary is replaced.
mod upgrade;

/// Which process has the interface.
mod handover;

/// The same with several workers.
mod upgrade_workers;

/// Processes that are killed or stopped.
mod signals;

/// Processes that are killed at any moment.
mod killing;

/// What peers hear of a worker process that is killed.
mod crashing;

/// Frames that are taken after the driver.
mod generic;

/// Floods of unsolicited frames.
mod flood;

/// Overload.
mod overload;

/// Clients that reuse the ports of earlier ones.
mod time_wait;

/// The status of a server.
#[path = "../status/ask.rs"]
mod ask;

/// Load for a while.
mod soak;

/// An interface that changes while it is in use.
mod surroundings;

/// Errors as users see them.
mod errors;

/// Load over the stack.
mod load;

/// Programs that are not changed.
mod run;

/// Programs on TAP devices and memifs.
mod run_devices;

/// Programs whose calls no library sees.
mod run_unseen;

/// Programs whose stack has little memory.
mod run_memory;

/// Programs that compute, or are stopped.
mod run_pauses;

/// Handlers of signals that fork, or don't come back.
mod run_signals;

/// Programs whose threads have little room.
mod run_small_stacks;

/// Programs whose processes serve one connection at a time.
mod run_prefork;

/// What is said of them.
mod run_words;

/// Logs of nginx.
mod run_logs;

/// Their socket calls.
mod run_calls;

/// Their processes.
mod run_processes;

/// Many of them.
mod run_many_workers;

/// What their connections lack.
mod run_lacking;

/// Several processes of a program, each with a stack.
mod run_workers;

/// Threads of a program, each with a stack.
mod run_threads;

/// The scripts of Onload's cookbook.
mod run_cookbook;

/// What goes wrong around them.
mod run_faults;

/// Several programs on one interface.
mod run_joining;

/// Listeners that a process does not look at.
mod run_neglected;

/// Connections that outlive their process.
mod run_orphans;

/// Common ones, as they are installed.
mod run_programs;
mod run_relays;

/// Looking at them.
mod run_stackdump;

/// What tests of proxies share.
#[path = "../stack/proxied.rs"]
mod proxied;

/// A proxy between both sides of the interface.
mod proxy;

/// Several worker threads on several queues.
mod workers;

/// Server and load over shared memory.
mod memif;

/// Proxies at both ends of shared memory.
mod memif_proxy;

/// Connecting and disconnecting the ends of shared memory.
mod memif_ends;

/// Several workers over shared memory.
mod memif_workers;

/// Ports of DPDK.
mod dpdk;

/// … behind a bridge.
mod dpdk_bridge;
