//! What a running server tells of itself: the way of a question, from who asks to the worker threads and back.
//!
//! ```text
//! client.rs   finds the server, asks, waits two seconds, puts the answers together
//! door.rs     the socket at which the process in charge is asked
//! answer.rs   what that process knows: itself, and what all workers have shown on their boards
//! board.rs    the memory of those boards
//! inspect.rs  in the worker process: asks all worker threads, a little per turn
//! show.rs     the worker's side: figures after each turn
//! look.rs     the worker's side: tables when it is asked
//! ```
//!
//! The process in charge never waits for a worker: it answers with what it knows, and hands the client's socket on to
//! the worker process. So a worker that hangs is told of as well as one that runs.

/// What the process in charge knows.
pub(crate) mod answer;

/// The memory in which workers show their figures.
pub(crate) mod board;

/// Asking.
pub mod client;

/// Where it is asked.
pub mod control_socket;

/// Where doors are.
pub mod socket_path;

/// Frames of a running stack.
mod capture;

/// Asking the worker threads.
pub(crate) mod inspect;

/// What they tell.
pub(crate) mod snapshot;

/// … of their devices.
mod rings;

/// What a worker shows after each turn.
pub(crate) mod publish;

/// Kinds of parcels between who asks and who answers.
pub(crate) mod parcel {
    /// A `Request`, as JSON.
    pub(crate) const QUESTION: u8 = 20;
    /// A `Status`, as JSON: the first thing that is answered.
    pub(crate) const STATUS: u8 = 21;
    /// A `Part`, as JSON: of each worker that was asked.
    pub(crate) const PART: u8 = 22;
    /// A sentence that says why there is no answer.
    pub(crate) const REFUSED: u8 = 23;
}
