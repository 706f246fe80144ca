//! What stands in a certificate (RFC 5280 4.1).

use crate::distinguished_name::{oneline, rfc2253};
use aws_lc_rs::digest;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fmt::Write;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::pem::{LineEnding, encode_string};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// The parts that are shown. Made from a certificate when one of them is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// As RFC 2253 has it: `CN=a,O=b`.
    pub subject: String,
    pub issuer: String,
    /// As old programs have it: `/O=b/CN=a`.
    pub subject_legacy: String,
    pub issuer_legacy: String,
    /// In hexadecimal digits, two a byte.
    pub serial: String,
    /// The host names that it is valid for.
    pub names: Vec<String>,
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
}

impl CertificateFacts {
    /// `None`: it is not well formed.
    pub fn parse(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?.tbs_certificate;
        let seconds = |time: x509_cert::time::Time| {
            i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
        };
        let mut serial = String::new();
        let bytes = certificate.serial_number.as_bytes();
        // A zero in front only says that the number is not negative.
        let bytes = match bytes {
            [0, rest @ ..] if !rest.is_empty() => rest,
            bytes => bytes,
        };
        for byte in bytes {
            let _ = write!(serial, "{byte:02X}");
        }
        Some(Self {
            subject: rfc2253(&certificate.subject),
            issuer: rfc2253(&certificate.issuer),
            subject_legacy: oneline(&certificate.subject),
            issuer_legacy: oneline(&certificate.issuer),
            serial,
            names: names(&certificate),
            not_before: seconds(certificate.validity.not_before),
            not_after: seconds(certificate.validity.not_after),
        })
    }

    /// Of the first certificate in a text (PEM).
    pub fn of_pem(pem: &[u8]) -> Option<Self> {
        let first = CertificateDer::pem_slice_iter(pem).next()?.ok()?;
        Self::parse(&first)
    }
}

fn names(certificate: &x509_cert::TbsCertificate) -> Vec<String> {
    let Ok(Some((_, names))) = certificate.get::<SubjectAltName>() else {
        return Vec::new();
    };
    let hosts = names.0.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        _ => None,
    });
    hosts.collect()
}

/// A certificate as PEM.
pub fn pem(der: &[u8]) -> String {
    encode_string("CERTIFICATE", LineEnding::LF, der).unwrap_or_default()
}

/// The SHA-1 of a certificate in hexadecimal digits: a name for it, no proof of anything.
pub fn fingerprint(der: &[u8]) -> String {
    let mut out = String::new();
    for byte in digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, der).as_ref() {
        let _ = write!(out, "{byte:02x}");
    }
    out
}
