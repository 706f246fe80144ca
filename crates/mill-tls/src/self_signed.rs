//! Peers whose own certificate is trusted: it signs itself, so no other one's signature is to be checked.
//!
//! OpenSSL takes such a certificate wherever it stands among the trusted ones. webpki refuses it where it says that it may
//! sign others, as those do which `openssl req -x509` makes.

use crate::certificate_facts::CertificateFacts;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};

/// The trusted certificates that sign themselves.
#[derive(Debug, Default)]
pub(crate) struct SelfSigned(Vec<Known>);

#[derive(Debug)]
struct Known {
    certificate: CertificateDer<'static>,
    /// Seconds since 1970.
    not_before: i64,
    not_after: i64,
}

/// What is found of a peer's own certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It is none of them.
    Unknown,
    Valid,
    NotYetValid,
    Expired,
}

impl SelfSigned {
    /// Adds those of a text in PEM; what is no certificate is told by those that read it for more.
    pub(crate) fn add(&mut self, pem: &[u8]) {
        let all = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        self.0.extend(all.filter_map(|certificate| {
            let facts = CertificateFacts::parse(&certificate)?;
            (facts.subject == facts.issuer).then_some(Known {
                certificate,
                not_before: facts.not_before,
                not_after: facts.not_after,
            })
        }));
    }

    pub(crate) fn find(&self, own: &CertificateDer<'_>, now: UnixTime) -> Found {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let known = self.0.iter().find(|known| known.certificate == *own);
        match known {
            None => Found::Unknown,
            Some(known) if now < known.not_before => Found::NotYetValid,
            Some(known) if now > known.not_after => Found::Expired,
            Some(_) => Found::Valid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use std::time::Duration;

    /// A certificate for the years from `first` to `last`, which may sign others.
    fn certificate(first: i32, last: i32) -> rcgen::Certificate {
        let mut params = CertificateParams::new(vec![String::from("a.example")]).unwrap();
        params.not_before = date_time_ymd(first, 1, 1);
        params.not_after = date_time_ymd(last, 1, 1);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    #[test]
    fn a_certificate_that_is_trusted_itself_is_good_in_its_time() {
        let (known, other) = (certificate(2020, 2030), certificate(2020, 2030));
        let mut all = SelfSigned::default();
        all.add(known.pem().as_bytes());
        let find = |certificate: &rcgen::Certificate, year: u64| {
            let now = UnixTime::since_unix_epoch(Duration::from_secs((year - 1970) * 31_556_952));
            all.find(certificate.der(), now)
        };
        assert_eq!(find(&known, 2025), Found::Valid);
        assert_eq!(find(&known, 2019), Found::NotYetValid);
        assert_eq!(find(&known, 2031), Found::Expired);
        assert_eq!(find(&other, 2025), Found::Unknown);
    }
}
