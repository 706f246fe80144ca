//! A client of ACME (RFC 8555) without sockets: it gets certificates from an authority and proves to it that a name is ours.
//!
//! [`client::Client`] says what is to be done next (send this request, answer clients with that, wait), and is told what
//! came of it; it does no I/O and reads no clock. What is random in it are keys and signatures, which aws-lc-rs makes.
//! mill-server's `acme.rs` drives it.

#![forbid(unsafe_code)]

/// The account's key.
pub mod account_key;
/// Answers of the authority.
pub mod answer;
/// Text for bytes (RFC 4648 5).
mod base64url;
/// Keys of certificates, and what is asked to be signed.
pub mod certificate_request;
/// Certificates that were issued.
pub mod chain;
/// Proofs that a name is ours.
pub mod challenge;
/// What is asked, step by step.
pub mod client;
/// What an authority offers.
mod directory;
/// Names and addresses that certificates are for.
pub mod identifier;
/// Signed requests.
mod jws;
/// Orders and their authorizations, as the authority has them.
mod order;
/// Errors of the authority.
pub mod problem;
/// When a certificate is replaced.
pub mod renewal;
