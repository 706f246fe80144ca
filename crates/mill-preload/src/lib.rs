//! `libmillstream.so`: the C library's socket functions over our own stack, for programs that are not changed
//! (LD_PRELOAD, as `millstream run` sets it).
//!
//! A call walks so:
//!
//! ```text
//! calls/*.rs          the function that the program calls; the descriptor's entry decides
//! descriptors.rs      one load: not ours (nearly always) …
//! originals.rs        … then the C library's own function
//! stacks.rs           ours: the stack of its number, behind a lock; made at the first accept, connect or poll
//! (mill-sockets)      what the call means
//! waiting.rs          where it would block: turns, spins, or sleeps in the kernel with everything that can end the wait
//! ```
//!
//! What a program binds is bound and listens in the kernel as without us: it is a declaration. The process that first polls
//! it or accepts there listens on its own stack as well (`listening.rs`), so masters that fork (nginx) have none. Each
//! stack socket has a descriptor of the kernel, a duplicate of one unconnected socket, so that numbers, limits and
//! fstat(2) stay true; so has a socket that the program has just made (`descriptors/fresh.rs`).
//!
//! Threads of a process share its stack, one at a time, or have one each (`stacks=thread`). While none of them is in a call,
//! `turner.rs` turns it. A child after fork(2) forgets the stacks of its parent, and makes one when it needs one; it has the parent's
//! connections by way of that (`lending.rs`, `borrowing.rs`), and a program that is started those that it is given (`spawning.rs`).
//!
//! `unsafe` is for C's pointers and for the functions behind ours; it decides nothing.

/// The C library's functions behind ours.
mod originals;

/// Which descriptors are ours.
mod descriptors;

/// Values at the caller's pointers.
mod memory;

/// Socket addresses as C has them.
mod address;

/// What descriptors of the stack are for the kernel.
mod placeholder;

/// Addresses that the kernel does not have.
mod own_addresses;

/// The process that has the device.
mod keeper;

/// The stacks of this process.
mod stacks;

/// One of them.
mod stack;

/// Several of them at a time.
mod held;

/// epoll sets in several stacks.
mod sets;

/// Listening where the kernel listens.
mod listening;

/// Where the program is about to listen.
mod declared;

/// Sockets that are watched before they are connected.
mod early;

/// What is shut down before there is a connection.
mod early_shutdown;

/// Options that a socket of the kernel has.
mod kernel_options;

/// Options that the stack has no counterpart of.
mod refused_options;

/// Signals that the program handles.
mod signals;

/// Calls that wait.
mod waiting;

/// What ends their sleep.
mod doorbell;

/// Turns of the stack while its program computes.
mod turner;

/// What other processes may know of the stack.
mod showing;

/// What the keeper may know of its connections.
mod noting;

/// The beginning and the end of the process, and fork(2).
mod process;

/// Connections that outlive it.
mod orphans;

/// Connections that forked children have, too.
mod lending;

/// Connections that this process has of its parent.
mod borrowing;

/// Connections that another process is about to get.
mod lent;

/// Connections that the kernel has of a listener.
mod kernel_queue;

/// Connections that a program gets which this one starts.
mod spawning;

/// vfork(2).
mod vforked;

/// The environment of programs that this one starts.
mod environment;

/// Preloaded without a keeper.
mod alone;

/// What is said on standard error.
mod say;

/// Mutexes.
mod lock;

/// The library's memory.
mod allocator;

/// The functions that programs call.
mod calls;
