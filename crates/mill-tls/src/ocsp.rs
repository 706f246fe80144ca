//! Whether a certificate is revoked: what its issuer is asked, and whether the answer can be relied on (RFC 6960).

/// Tests.
#[cfg(test)]
mod tests;

use aws_lc_rs::digest;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use std::fmt;
use std::time::Duration;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::asn1::{AnyRef, Null, ObjectIdentifier, OctetString};
use x509_cert::der::{Any, Decode, Encode, Reader, SliceReader};
use x509_cert::ext::pkix::AuthorityInfoAccessSyntax;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_ocsp::{
    BasicOcspResponse, CertId, CertStatus, OcspGeneralizedTime, OcspRequest, OcspResponse,
    OcspResponseStatus, Request, SingleResponse, TbsRequest,
};

/// What is asked about one certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct OcspQuestion {
    chain: Vec<CertificateDer<'static>>,
    issuer: CertificateDer<'static>,
    id: CertId,
    responder: Option<String>,
    /// As it is sent (DER).
    request: Vec<u8>,
}

/// Why there is nothing to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoQuestion {
    /// The certificate cannot be read.
    Malformed,
    /// The certificate of its issuer is neither in the chain nor among those that are trusted.
    NoIssuer,
}

/// An answer that can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcspAnswer {
    pub status: Status,
    /// When there is a newer one, in seconds since 1970.
    pub next_update: Option<i64>,
}

/// What an issuer says of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Good,
    Revoked,
    /// The issuer does not know it.
    Unknown,
}

/// Why an answer cannot be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspFault {
    Malformed,
    /// The responder could not answer: its own word for it.
    Refused(&'static str),
    /// It is about another certificate.
    OtherCertificate,
    /// It is of the future, or out of date.
    NotNow,
    /// Neither the issuer has signed it, nor one that the issuer has made for this.
    BadSignature,
    /// The issuer does not lead to a trusted certificate (`ssl_stapling_verify`).
    Untrusted,
}

impl OcspQuestion {
    /// About the first certificate of a chain (PEM), whose issuer stands behind it or in one of the other texts.
    pub fn new<'a>(
        chain: &[u8],
        others: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, NoQuestion> {
        Self::about(&certificates(chain), others)
    }

    /// The same for a chain that is no text.
    pub fn about<'a>(
        chain: &[CertificateDer<'static>],
        others: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, NoQuestion> {
        let leaf = chain.first().ok_or(NoQuestion::Malformed)?;
        let leaf = Certificate::from_der(leaf).map_err(|_| NoQuestion::Malformed)?;
        let others = others.into_iter().flat_map(certificates);
        let mut candidates = chain.iter().skip(1).cloned().chain(others);
        let name = &leaf.tbs_certificate.issuer;
        let issuer = candidates.find_map(|der| {
            let issuer = Certificate::from_der(&der).ok()?;
            (issuer.tbs_certificate.subject == *name).then_some((der, issuer))
        });
        let (issuer, parsed) = issuer.ok_or(NoQuestion::NoIssuer)?;
        let responder = responder(&leaf);
        let id = id(&leaf, &parsed).ok_or(NoQuestion::Malformed)?;
        let request = request(&id).ok_or(NoQuestion::Malformed)?;
        Ok(Self {
            chain: chain.to_vec(),
            issuer,
            id,
            responder,
            request,
        })
    }

    /// The URL in the certificate at which its issuer is asked.
    pub fn responder(&self) -> Option<&str> {
        self.responder.as_deref()
    }

    /// What is sent (DER).
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Judges an answer (DER); `now` is in seconds since 1970.
    pub fn judge(&self, answer: &[u8], now: i64) -> Result<OcspAnswer, OcspFault> {
        let response = OcspResponse::from_der(answer).map_err(|_| OcspFault::Malformed)?;
        if response.response_status != OcspResponseStatus::Successful {
            return Err(OcspFault::Refused(words(response.response_status)));
        }
        let bytes = response.response_bytes.ok_or(OcspFault::Malformed)?;
        if bytes.response_type != BASIC {
            return Err(OcspFault::Malformed);
        }
        let basic = BasicOcspResponse::from_der(bytes.response.as_bytes());
        let basic = basic.map_err(|_| OcspFault::Malformed)?;
        let mut all = basic.tbs_response_data.responses.iter();
        let single = all.find(|one| self.is_about(one));
        let single = single.ok_or(OcspFault::OtherCertificate)?;
        self.check_signature(&basic, bytes.response.as_bytes(), now)?;
        let next_update = single.next_update.map(seconds);
        let is_old = next_update.is_some_and(|next| next < now - CLOCK_TOLERANCE);
        if is_old || seconds(single.this_update) > now + CLOCK_TOLERANCE {
            return Err(OcspFault::NotNow);
        }
        let status = match single.cert_status {
            CertStatus::Good(_) => Status::Good,
            CertStatus::Revoked(_) => Status::Revoked,
            CertStatus::Unknown(_) => Status::Unknown,
        };
        Ok(OcspAnswer {
            status,
            next_update,
        })
    }

    /// Whether the certificate leads to one of these (PEM).
    pub fn check_issuer(&self, trusted: &[u8], now: i64) -> Result<(), OcspFault> {
        let trusted = certificates(trusted);
        let anchors: Vec<_> = trusted
            .iter()
            .filter_map(|der| anchor_from_trusted_cert(der).ok())
            .collect();
        let leaf = self.chain.first().ok_or(OcspFault::Malformed)?;
        let leaf = EndEntityCert::try_from(leaf).map_err(|_| OcspFault::Malformed)?;
        let others = self.chain.get(1..).unwrap_or_default();
        let usage = KeyUsage::server_auth();
        let algorithms = ALL_VERIFICATION_ALGS;
        let led = leaf.verify_for_usage(algorithms, &anchors, others, time(now), usage, None, None);
        led.map(drop).map_err(|_| OcspFault::Untrusted)
    }

    fn is_about(&self, single: &SingleResponse) -> bool {
        let (id, asked) = (&single.cert_id, &self.id);
        id.hash_algorithm.oid == asked.hash_algorithm.oid
            && id.issuer_name_hash == asked.issuer_name_hash
            && id.issuer_key_hash == asked.issuer_key_hash
            && id.serial_number == asked.serial_number
    }

    /// The issuer has signed it, or one whose certificate the issuer has made for that (RFC 6960 4.2.2.2).
    fn check_signature(
        &self,
        basic: &BasicOcspResponse,
        bytes: &[u8],
        now: i64,
    ) -> Result<(), OcspFault> {
        let data = signed_part(bytes).ok_or(OcspFault::Malformed)?;
        let signature = basic.signature.as_bytes().ok_or(OcspFault::Malformed)?;
        let is_signed_by = |signer: &CertificateDer<'_>| {
            let mut algorithms = algorithms(&basic.signature_algorithm);
            EndEntityCert::try_from(signer).is_ok_and(|signer| {
                algorithms.any(|one| signer.verify_signature(one, data, signature).is_ok())
            })
        };
        if is_signed_by(&self.issuer) {
            return Ok(());
        }
        let anchor = anchor_from_trusted_cert(&self.issuer);
        let anchors = [anchor.map_err(|_| OcspFault::Malformed)?];
        let signers = basic.certs.iter().flatten().take(SIGNERS_MAX);
        let is_delegated = signers.into_iter().any(|signer| {
            let Ok(der) = signer.to_der() else {
                return false;
            };
            let der = CertificateDer::from(der);
            let usage = KeyUsage::required(OCSP_SIGNING);
            let is_made_for_this = EndEntityCert::try_from(&der).is_ok_and(|signer| {
                let all = ALL_VERIFICATION_ALGS;
                let led = signer.verify_for_usage(all, &anchors, &[], time(now), usage, None, None);
                led.is_ok()
            });
            is_made_for_this && is_signed_by(&der)
        });
        is_delegated.then_some(()).ok_or(OcspFault::BadSignature)
    }
}

/// `tbsResponseData` as it was sent.
fn signed_part(basic: &[u8]) -> Option<&[u8]> {
    let content = AnyRef::from_der(basic).ok()?.value();
    SliceReader::new(content).ok()?.tlv_bytes().ok()
}

fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    let all = CertificateDer::pem_slice_iter(pem);
    all.filter_map(Result::ok).collect()
}

/// `authorityInfoAccess` (RFC 5280 4.2.2.1).
fn responder(certificate: &Certificate) -> Option<String> {
    let (_, access) = certificate
        .tbs_certificate
        .get::<AuthorityInfoAccessSyntax>()
        .ok()??;
    let mut all = access.0.into_iter();
    all.find_map(|access| match access.access_location {
        GeneralName::UniformResourceIdentifier(url) if access.access_method == OCSP => {
            Some(url.to_string())
        }
        _ => None,
    })
}

fn id(leaf: &Certificate, issuer: &Certificate) -> Option<CertId> {
    let sha1 = |bytes: &[u8]| {
        let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, bytes);
        OctetString::new(digest.as_ref()).ok()
    };
    let name = leaf.tbs_certificate.issuer.to_der().ok()?;
    let key = &issuer.tbs_certificate.subject_public_key_info;
    Some(CertId {
        hash_algorithm: AlgorithmIdentifierOwned {
            oid: SHA1,
            parameters: Some(Any::from(Null)),
        },
        issuer_name_hash: sha1(&name)?,
        issuer_key_hash: sha1(key.subject_public_key.as_bytes()?)?,
        serial_number: leaf.tbs_certificate.serial_number.clone(),
    })
}

fn request(id: &CertId) -> Option<Vec<u8>> {
    let request = Request {
        req_cert: id.clone(),
        single_request_extensions: None,
    };
    let request = OcspRequest {
        tbs_request: TbsRequest {
            version: x509_ocsp::Version::V1,
            requestor_name: None,
            request_list: vec![request],
            request_extensions: None,
        },
        optional_signature: None,
    };
    request.to_der().ok()
}

/// Those that a signature says it was made by: they differ in the kind of the key.
fn algorithms(
    named: &AlgorithmIdentifierOwned,
) -> impl Iterator<Item = &'static dyn SignatureVerificationAlgorithm> {
    let der = named.to_der().unwrap_or_default();
    let all = ALL_VERIFICATION_ALGS.iter().copied();
    // webpki's have no header: tag and length, two bytes for all that there are.
    all.filter(move |known| Some(known.signature_alg_id().as_ref()) == der.get(2..))
}

fn seconds(time: OcspGeneralizedTime) -> i64 {
    i64::try_from(time.0.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
}

fn time(now: i64) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now).unwrap_or(0)))
}

const fn words(status: OcspResponseStatus) -> &'static str {
    match status {
        OcspResponseStatus::Successful => "successful",
        OcspResponseStatus::MalformedRequest => "malformedrequest",
        OcspResponseStatus::InternalError => "internalerror",
        OcspResponseStatus::TryLater => "trylater",
        OcspResponseStatus::SigRequired => "sigrequired",
        OcspResponseStatus::Unauthorized => "unauthorized",
    }
}

impl fmt::Display for NoQuestion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Malformed => "certificate cannot be read",
            Self::NoIssuer => "issuer certificate not found",
        })
    }
}

impl fmt::Display for OcspFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => formatter.write_str("the OCSP response is malformed"),
            Self::Refused(word) => write!(formatter, "OCSP response not successful ({word})"),
            Self::OtherCertificate => {
                formatter.write_str("certificate status not found in the OCSP response")
            }
            Self::NotNow => formatter.write_str("the OCSP response is not valid now"),
            Self::BadSignature => {
                formatter.write_str("the OCSP response is not signed by the issuer")
            }
            Self::Untrusted => {
                formatter.write_str("the issuer does not lead to a trusted certificate")
            }
        }
    }
}

impl fmt::Debug for OcspQuestion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OcspQuestion({:?})", self.id.serial_number)
    }
}

/// By how many seconds the clocks of both ends may differ, as with nginx.
const CLOCK_TOLERANCE: i64 = 300;
/// Certificates in an answer that are looked at.
const SIGNERS_MAX: usize = 4;
const OCSP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");
const BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
const SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
/// id-kp-OCSPSigning, 1.3.6.1.5.5.7.3.9.
const OCSP_SIGNING: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 9];
