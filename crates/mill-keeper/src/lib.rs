//! The keeper of `millstream run`: the process that has the rights, and makes devices for programs that have none.
//!
//! A program drops its rights (nginx's workers), or never had any (wrk). So the device is made before it starts, and kept by a
//! process of its own; a process of the program that needs a stack asks for it over a socket that it has inherited:
//!
//! ```text
//! millstream run           keeper                       program, and processes that it forks
//!  │ makes the device       │                            │
//!  ├─ forks ───────────────▶│ keeper.rs                  │
//!  ├─ becomes the program ──│───────────────────────────▶│
//!  │                        │                            │ (mill-preload) accepts, connects or polls the first time
//!  │                        │◀─ request.rs: a channel ───┤
//!  │                        ├─ text, descriptors ───────▶│ its stack runs, on its share of the interface's queues
//!  │                        │                            │ (shares.rs); the keeper has no part in it
//!  │                        │◀─ keep ────────────────────╳ one ends, and leaves connections that wait at its listeners
//!  │                        ├─ claim ───────────────────▶│ they go to the process that has the device next
//!  │                        │◀─ pass ────────────────────┤ one lets connections wait, and another one listens there, too:
//!  │                        ├───────────────────────────▶│ they go to that one
//!  │                        │                            ╳ one is killed: farewell.rs tells the peers of its connections,
//!  │                        │                            │ which are in mill-device ledger.rs
//!  │                        │                            ╳ the last process has ended
//!  │                        ╳ end of the socket: the interface is the kernel's again
//! ```
//!
//! Further programs on the same device come by joining.rs: the keeper that is there has one more to answer.
//!
//! All processes have descriptors of the device, so that stacks go on when the keeper dies.
#![forbid(unsafe_code)]

/// What a process asks, and what it gets.
pub mod request;

/// Which partitions of the interface a process is to own.
pub mod shares;

/// A process that has the device.
mod member;

/// What peers of a killed process are told.
mod farewell;

/// The process that answers.
pub mod keeper;

/// Further programs on the same device.
mod joining;

/// What a program gets, in words.
mod offer;

/// Which program a word means.
pub mod executable;

/// From a command line to a running program.
pub mod launch;

/// Processes on the stack, as they show themselves.
pub mod accelerated;

/// Onload's command line.
pub mod onload;

/// `onload_stackdump`.
pub mod stackdump;
