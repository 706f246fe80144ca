//! What cookies are signed with where no `challenge_secret` is written.

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use mill_tls::tickets::TicketSecret;
use std::fmt;

const SECRET_BYTES: usize = 32;

/// The same for all workers, from the first configuration of a process on.
#[derive(Clone)]
pub(crate) struct ChallengeSecret([u8; SECRET_BYTES]);

impl ChallengeSecret {
    /// Of what other processes have too, so that a cookie of one binary is good for the one that replaces it; else random.
    pub(crate) fn new(shared: Option<&TicketSecret>) -> Self {
        let mut bytes = [0; SECRET_BYTES];
        let made = match shared {
            Some(shared) => derive(shared.bytes(), &mut bytes),
            None => rand::fill(&mut bytes).is_ok(),
        };
        // What signs nothing would let all in.
        assert!(
            made,
            "aws-lc makes keys and random numbers, or the process ends"
        );
        Self(bytes)
    }

    pub(super) const fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// By HKDF (RFC 5869).
fn derive(shared: &[u8], out: &mut [u8; SECRET_BYTES]) -> bool {
    (Salt::new(HKDF_SHA256, b"millstream").extract(shared))
        .expand(&[b"challenge cookies"], Length)
        .and_then(|material| material.fill(out))
        .is_ok()
}

/// Bytes of key material.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        SECRET_BYTES
    }
}

impl fmt::Debug for ChallengeSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ChallengeSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_with_one_secret_sign_alike_and_others_do_not() {
        let made = |byte| ChallengeSecret::new(Some(&TicketSecret::of([byte; 32]))).0;
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
        assert_ne!(made(1), [1; 32], "it is not the secret of tickets itself");
        let random = || ChallengeSecret::new(None).0;
        assert_ne!(random(), random());
    }
}
