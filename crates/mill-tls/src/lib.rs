//! TLS 1.2 and 1.3 over any engine's `Stream`: handshakes by rustls, records sealed and opened by our own code over aws-lc-rs,
//! in the bytes that the engine lends.
//!
//! A connection is a [`transport::Transport`]: in clear, or under TLS. The task which waits for its stream drives the handshake.
//!
//! Invariants:
//! - No I/O and no clock: a stream is the engine's, and randomness is aws-lc's.
//! - After the handshake no record costs an allocation, and no byte is copied but by its cipher, except where a reader needs
//!   more than one record at once.
#![forbid(unsafe_code)]

/// Why a peer is told that something is wrong, or over.
pub mod alert;
/// Certificates and their keys.
pub mod certificate;
/// How a client shakes hands.
pub mod client_context;
/// What a server looks at before it answers.
pub mod client_hello;
/// What a handshake has agreed on.
pub mod facts;
/// Handshakes, by rustls.
pub mod handshake;
/// Sealing and opening.
pub mod protection;
/// Headers of records.
pub mod record;
/// Which settings answer a handshake.
pub mod server_context;
/// TLS over a stream.
pub mod stream;
/// A connection in clear or under TLS.
pub mod transport;
/// What connections of a worker share.
pub mod worker;
