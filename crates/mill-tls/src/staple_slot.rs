//! An answer of OCSP (RFC 6960) that comes while the server runs, and is replaced.

use rustls::sign::CertifiedKey;
use std::sync::{Arc, PoisonError, RwLock};

/// Where all workers look for it: clones are the same slot.
#[derive(Clone, Debug)]
pub struct StapleSlot {
    plain: Arc<CertifiedKey>,
    stapled: Arc<RwLock<Option<Arc<CertifiedKey>>>>,
}

impl StapleSlot {
    pub(crate) fn new(plain: &Arc<CertifiedKey>) -> Self {
        Self {
            plain: Arc::clone(plain),
            stapled: Arc::default(),
        }
    }

    /// From now on this goes with the certificate; `None`: nothing does.
    pub fn set(&self, answer: Option<&[u8]>) {
        let stapled = answer.map(|answer| {
            let mut certified = CertifiedKey::clone(&self.plain);
            certified.ocsp = Some(answer.to_vec());
            Arc::new(certified)
        });
        *self.stapled.write().unwrap_or_else(PoisonError::into_inner) = stapled;
    }

    /// The certificate with the answer, if there is one.
    pub(crate) fn stapled(&self) -> Option<Arc<CertifiedKey>> {
        let stapled = self.stapled.read();
        stapled.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
