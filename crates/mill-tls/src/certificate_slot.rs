//! A certificate that comes while the server runs, and is replaced.

use crate::certificate::Certified;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::{Arc, PoisonError, RwLock};

/// Where all workers look for it: clones are the same slot.
#[derive(Clone, Debug, Default)]
pub struct CertificateSlot(Arc<RwLock<Option<Certified>>>);

impl CertificateSlot {
    /// From now on, handshakes are answered with this.
    pub fn set(&self, certified: Certified) {
        let mut slot = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *slot = Some(certified);
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.read().is_none()
    }

    fn read(&self) -> Option<Certified> {
        let slot = self.0.read().unwrap_or_else(PoisonError::into_inner);
        slot.clone()
    }
}

/// The slot first, if the client can check what is in it, then the other certificates of the server.
#[derive(Debug)]
pub(crate) struct SlotFirst {
    pub(crate) slot: CertificateSlot,
    pub(crate) others: Arc<dyn ResolvesServerCert>,
}

impl ResolvesServerCert for SlotFirst {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let in_slot = self.slot.read();
        let fits = |certified: &Certified| {
            certified.fits(hello.signature_schemes(), hello.cipher_suites())
        };
        match in_slot {
            Some(certified) if fits(&certified) => Some(certified.key()),
            other => {
                let found = self.others.resolve(hello);
                found.or_else(|| other.map(|certified| certified.key()))
            }
        }
    }
}
