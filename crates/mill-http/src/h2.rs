//! HTTP/2 without sockets: frames in, events out, and back (RFC 9113).
//!
//! A `connection::Connection` is given the peer's bytes and says what they mean, one event at a time; it collects what
//! it owes the peer (acknowledgements, windows, resets) until that is taken. It knows each stream's state, both flow-control
//! windows and the order in which streams may send. Content passes by it: the caller copies it from and to where it stands.

/// Bounds on what a peer may cost.
mod abuse;
/// The head of an answer, as a client gets it.
mod answer;
/// One connection, on either side.
pub mod connection;
/// Why a stream or a connection ends.
pub mod error;
/// Frames and their bytes.
pub mod frame;
/// Field sections as bytes.
pub mod hpack;
/// Bounds, with their defaults.
pub mod limits;
/// Which stream comes first (RFC 9218).
pub mod priority;
/// The head of a request.
mod request;
/// The head of an answer.
pub mod response;
/// What each side has announced.
pub mod settings;
/// The state of one stream.
mod stream;
