//! packetdrill's plug-in interface over mill-stack, in virtual time: `packetdrill --so_filename=libmill_packetdrill.so`.
//!
//! ```text
//! interface    the table of functions that packetdrill calls, and its C types
//! hooks        one function for each entry: pointers become slices, results become errno
//!   stage      the world behind a lock, and which call waits for which: packetdrill blocks on a second thread
//!     world    the host, a wire without a device, and a clock that moves when a call waits
//! ```
//!
//! Invariants:
//! - Time passes in `usleep` and `netdev_receive` only, from timer to timer, and by a microsecond each time the
//!   clock is read, because packetdrill spins before an event.
//! - While a call blocks, time stands still at each change until the call was tried again.
//! - `unsafe` is for the C interface: everything below `hooks` is safe code.

/// The table of functions, and the C types in it.
pub mod interface;

/// The functions of the table.
mod hooks;

/// The world behind a lock.
mod stage;

/// The host and its surroundings.
mod world;

pub use hooks::packetdrill_interface_init;
