//! Which algorithms the signatures of a handshake have (RFC 8446 4.2.3).
//!
//! rustls does not tell. It asks the key for a signer, and the check of client certificates to verify, in the midst of a
//! handshake on the thread that drives it: what they see is noted there until the handshake takes it.

use rustls::sign::{Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static NOTED: Cell<Signatures> = const { Cell::new(Signatures { own: None, peer: None }) };
}

/// The numbers of the algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signatures {
    /// Of the server's signature; `None` where a session was resumed.
    pub own: Option<u16>,
    /// Of the client's, if it has shown a certificate.
    pub peer: Option<u16>,
}

/// A key that notes what it signs with.
#[derive(Debug)]
pub(crate) struct NotingKey(pub(crate) Arc<dyn SigningKey>);

/// What was noted on this thread since the last call.
pub(crate) fn take() -> Signatures {
    NOTED.take()
}

/// Notes the algorithm of a client's signature.
pub(crate) fn note_peer(scheme: SignatureScheme) {
    let peer = Some(u16::from(scheme));
    NOTED.set(Signatures {
        peer,
        ..NOTED.get()
    });
}

impl Signatures {
    /// Adds what a later part of the same handshake has noted.
    pub(crate) fn add(&mut self, later: Self) {
        self.own = later.own.or(self.own);
        self.peer = later.peer.or(self.peer);
    }
}

impl SigningKey for NotingKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.0.choose_scheme(offered)?;
        let own = Some(u16::from(signer.scheme()));
        NOTED.set(Signatures { own, ..NOTED.get() });
        Some(signer)
    }

    fn public_key(&self) -> Option<rustls::pki_types::SubjectPublicKeyInfoDer<'_>> {
        self.0.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

/// The name that IANA has for an algorithm, as OpenSSL says it; `None` for one that no handshake here can have.
pub fn signature_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0201 => "rsa_pkcs1_sha1",
        0x0203 => "ecdsa_sha1",
        0x0401 => "rsa_pkcs1_sha256",
        0x0403 => "ecdsa_secp256r1_sha256",
        0x0501 => "rsa_pkcs1_sha384",
        0x0503 => "ecdsa_secp384r1_sha384",
        0x0601 => "rsa_pkcs1_sha512",
        0x0603 => "ecdsa_secp521r1_sha512",
        0x0804 => "rsa_pss_rsae_sha256",
        0x0805 => "rsa_pss_rsae_sha384",
        0x0806 => "rsa_pss_rsae_sha512",
        0x0807 => "ed25519",
        0x0808 => "ed448",
        _ => return None,
    })
}
