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
/// What stands in a certificate.
pub mod certificate_facts;
/// Certificates that come later.
pub mod certificate_slot;
/// Names of ciphers.
pub mod cipher_names;
/// Certificates of clients.
pub mod client_check;
/// How a client shakes hands.
pub mod client_context;
/// What a server looks at before it answers.
pub mod client_hello;
/// Tickets that a client keeps.
mod client_tickets;
/// Names in certificates.
pub mod distinguished_name;
/// Keys under a password.
mod encrypted_key;
/// What a handshake has agreed on.
pub mod facts;
/// Names of groups.
pub mod groups;
/// Handshakes, by rustls.
pub mod handshake;
/// Secrets for programs that look at recorded packets.
pub mod key_log;
/// Whether a certificate is revoked.
pub mod ocsp;
/// Sealing and opening.
pub mod protection;
/// The length of a certificate's public key.
pub mod public_key;
/// Headers of records.
pub mod record;
/// Peers whose own certificate is trusted.
mod self_signed;
/// What a client checks of a server's certificate.
pub mod server_check;
/// Which settings answer a handshake.
pub mod server_context;
/// Names of servers.
pub mod server_name;
/// Sessions that the server keeps.
mod session_cache;
/// Algorithms of signatures.
pub mod signature;
/// Answers of OCSP that come later.
pub mod staple_slot;
/// TLS over a stream.
pub mod stream;
/// Sessions that clients keep.
pub mod tickets;
/// A connection in clear or under TLS.
pub mod transport;
/// What connections of a worker share.
pub mod worker;
