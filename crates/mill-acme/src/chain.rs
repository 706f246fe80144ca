//! Certificates that were issued.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::{PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::ObjectIdentifier;

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
}

impl Validity {
    /// Of the first certificate in a text (PEM); `None`: there is none.
    pub fn of_pem(pem: &[u8]) -> Option<Self> {
        let validity = certificates(pem).next()??.tbs_certificate.validity;
        let seconds = |time: x509_cert::time::Time| {
            i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
        };
        Some(Self {
            not_before: seconds(validity.not_before),
            not_after: seconds(validity.not_after),
        })
    }
}

/// Whether the last certificate of a chain was issued by one with this common name (`preferred_chain`).
pub(crate) fn is_issued_by(pem: &[u8], common_name: &str) -> bool {
    let Some(Some(last)) = certificates(pem).last() else {
        return false;
    };
    let parts = last.tbs_certificate.issuer.0.iter();
    let mut attributes = parts.flat_map(|part| part.0.iter());
    attributes.any(|attribute| {
        let value = &attribute.value;
        let text = value
            .decode_as::<Utf8StringRef<'_>>()
            .map(|text| text.as_str() == common_name);
        let printable = || value.decode_as::<PrintableStringRef<'_>>();
        let is_equal = text.or_else(|_| printable().map(|text| text.as_str() == common_name));
        attribute.oid == COMMON_NAME && is_equal.unwrap_or(false)
    })
}

/// Those of a text (PEM); `None` for one that cannot be read.
fn certificates(pem: &[u8]) -> impl Iterator<Item = Option<Certificate>> {
    CertificateDer::pem_slice_iter(pem).map(|der| Certificate::from_der(&der.ok()?).ok())
}

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

#[cfg(test)]
mod tests {
    use super::{Validity, is_issued_by};
    use rcgen::{CertificateParams, DnType, Issuer, KeyPair, date_time_ymd};

    #[test]
    fn the_top_of_a_chain_says_by_what_it_was_issued() {
        let mut root = CertificateParams::default();
        root.distinguished_name.push(DnType::CommonName, "Root X");
        let issuer = Issuer::new(root, KeyPair::generate().unwrap());
        let mut leaf = CertificateParams::new(vec![String::from("a.example")]).unwrap();
        leaf.not_before = date_time_ymd(2026, 1, 1);
        leaf.not_after = date_time_ymd(2026, 1, 2);
        let key = KeyPair::generate().unwrap();
        let pem = leaf.signed_by(&key, &issuer).unwrap().pem();
        assert!(is_issued_by(pem.as_bytes(), "Root X"));
        assert!(!is_issued_by(pem.as_bytes(), "Root Y"));
        let validity = Validity::of_pem(pem.as_bytes()).unwrap();
        assert_eq!(validity.not_after - validity.not_before, 86_400);
        for broken in [
            "",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
        ] {
            assert_eq!(Validity::of_pem(broken.as_bytes()), None);
            assert!(!is_issued_by(broken.as_bytes(), "Root X"));
        }
    }
}
