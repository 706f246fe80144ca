//! The functions that programs call, as the C library declares them.
//!
//! Each is thin: it looks up the descriptor, and calls what is behind it. All are `unsafe` because they trust their callers'
//! pointers, as the C library does: every argument is as the manual of the function says.

/// Connections: accept(2), connect(2), their addresses and their ends.
mod connections;

/// bind(2) and listen(2).
mod binding;

/// Reading.
mod reading;

/// What reading does on a stream of the stack.
mod receiving;

/// Writing.
mod writing;

/// Descriptors in messages.
mod rights;

/// splice(2).
mod splicing;

/// What writing does on a stream of the stack.
mod sending;

/// Descriptors: close(2), dup(2), fcntl(2), ioctl(2).
pub(crate) mod numbers;

/// Calls that make descriptors.
mod creating;

/// Streams of stdio.
pub(crate) mod stdio;

/// Files and pipes, whose numbers may have been a connection's.
mod files;

/// Options.
mod options;

/// poll(2) and select(2).
mod polling;

/// What epoll sets watch.
mod watching;

/// What they tell.
pub(crate) mod events;

/// Threads that others end.
mod cancelling;

/// Processes that begin as a copy.
mod forking;

/// execve(2).
mod executing;

/// syscall(2).
mod by_number;
