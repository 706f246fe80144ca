//! Certificates of clients: asked for in the handshake, checked when it is over, so that the answer can be an error page.

use crate::self_signed::{Found, SelfSigned};
use crate::signature;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, TrustAnchor, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::fmt;
use std::sync::Arc;
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, KeyUsage, OwnedCertRevocationList,
    RevocationCheckDepth, RevocationOptionsBuilder, UnknownStatusPolicy, anchor_from_trusted_cert,
};

/// The issuers that a server trusts for certificates of its clients.
#[derive(Clone)]
pub struct ClientCheck(Arc<Trust>);

struct Trust {
    anchors: Vec<TrustAnchor<'static>>,
    self_signed: SelfSigned,
    /// Told to clients, which choose a certificate by it.
    hints: Vec<DistinguishedName>,
    revocation_lists: Vec<CertRevocationList<'static>>,
    /// Certificates between the client's and a trusted one, at most.
    depth: usize,
    algorithms: WebPkiSupportedAlgorithms,
}

/// With what certificates of clients are checked; all in PEM.
#[derive(Debug, Default)]
pub struct ClientCheckSettings<'a> {
    /// Trusted, and told to clients.
    pub authorities: Option<&'a [u8]>,
    /// Trusted, and not told.
    pub trusted: Option<&'a [u8]>,
    /// Every certificate of a chain has to be looked up in one of these.
    pub revocation_lists: Option<&'a [u8]>,
    pub depth: usize,
}

/// Whether a client's certificate is valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verified {
    /// There is none, or it was not asked for.
    #[default]
    None,
    Success,
    Failed {
        /// OpenSSL's number for it.
        code: u32,
        /// As OpenSSL says it.
        reason: &'static str,
        /// All that is wrong is that no trusted certificate is behind it.
        is_untrusted: bool,
    },
}

impl ClientCheck {
    /// The error says what is wrong with the texts.
    pub fn new(settings: &ClientCheckSettings<'_>) -> Result<Self, String> {
        let algorithms =
            rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
        let mut trust = Trust {
            anchors: Vec::new(),
            self_signed: SelfSigned::default(),
            hints: Vec::new(),
            revocation_lists: Vec::new(),
            depth: settings.depth,
            algorithms,
        };
        for (text, is_told) in [(settings.authorities, true), (settings.trusted, false)] {
            let Some(text) = text else { continue };
            trust.add_anchors(text, is_told)?;
        }
        if let Some(text) = settings.revocation_lists {
            for list in CertificateRevocationListDer::pem_slice_iter(text) {
                let list = list.map_err(|error| error.to_string())?;
                let list =
                    OwnedCertRevocationList::from_der(&list).map_err(|error| error.to_string())?;
                trust.revocation_lists.push(list.into());
            }
            if trust.revocation_lists.is_empty() {
                return Err(String::from("there is no CRL in it (PEM)"));
            }
        }
        Ok(Self(Arc::new(trust)))
    }

    /// Checks a chain, the client's own certificate first. Costs one signature's verification a certificate.
    /// Returns also which of them lead to a trusted one, by their indices.
    pub(crate) fn check(&self, chain: &[CertificateDer<'static>]) -> (Verified, Box<[usize]>) {
        let Some((own, others)) = chain.split_first() else {
            return (Verified::None, Box::default());
        };
        match self.0.path_of(own, others) {
            Ok(path) => (Verified::Success, path),
            Err(error) => (failed(&error, own, others), Box::default()),
        }
    }
}

impl Trust {
    fn add_anchors(&mut self, text: &[u8], is_told: bool) -> Result<(), String> {
        let before = self.anchors.len();
        self.self_signed.add(text);
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            let anchor =
                anchor_from_trusted_cert(&certificate).map_err(|error| error.to_string())?;
            if is_told {
                self.hints
                    .push(DistinguishedName::in_sequence(anchor.subject.as_ref()));
            }
            self.anchors.push(anchor.to_owned());
        }
        if self.anchors.len() == before {
            return Err(String::from("there is no certificate in it (PEM)"));
        }
        Ok(())
    }

    fn path_of(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Result<Box<[usize]>, webpki::Error> {
        // Whether it is revoked could be told by its issuer's list alone.
        if self.revocation_lists.is_empty() {
            let now = UnixTime::now();
            match self.self_signed.find(own, now) {
                Found::Unknown => {}
                // No other certificate says whether it is revoked.
                Found::Valid => return Ok(Box::default()),
                Found::NotYetValid => {
                    return Err(webpki::Error::CertNotValidYet {
                        time: now,
                        not_before: now,
                    });
                }
                Found::Expired => {
                    return Err(webpki::Error::CertExpired {
                        time: now,
                        not_after: now,
                    });
                }
            }
        }
        let certificate = EndEntityCert::try_from(own)?;
        let lists: Vec<&CertRevocationList<'_>> = self.revocation_lists.iter().collect();
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|builder| {
            builder
                .with_depth(RevocationCheckDepth::Chain)
                .with_status_policy(UnknownStatusPolicy::Deny)
                .with_expiration_policy(ExpirationPolicy::Enforce)
                .build()
        });
        let path = certificate.verify_for_usage(
            self.algorithms.all,
            &self.anchors,
            others,
            UnixTime::now(),
            KeyUsage::client_auth(),
            revocation,
            None,
        )?;
        match path.intermediate_certificates().count() > self.depth {
            true => Err(webpki::Error::MaximumPathDepthExceeded),
            false => {
                let between = path.intermediate_certificates().filter_map(|used| {
                    let der = used.der();
                    others
                        .iter()
                        .position(|other| *other == der)
                        .map(|at| at + 1)
                });
                Ok(std::iter::once(0).chain(between).collect())
            }
        }
    }
}

/// OpenSSL's words for what webpki finds.
fn failed(
    error: &webpki::Error,
    own: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
) -> Verified {
    use webpki::Error as Known;
    let (code, reason, is_untrusted) = match error {
        Known::CertExpired { .. } => (10, "certificate has expired", false),
        Known::CertNotValidYet { .. } => (9, "certificate is not yet valid", false),
        Known::CertRevoked => (23, "certificate revoked", false),
        Known::CrlExpired { .. } => (12, "CRL has expired", false),
        Known::UnknownRevocationStatus => (3, "unable to get certificate CRL", false),
        Known::MaximumPathDepthExceeded | Known::MaximumPathBuildCallsExceeded => {
            (20, "unable to get local issuer certificate", true)
        }
        Known::RequiredEkuNotFoundContext(_) => (26, "unsuitable certificate purpose", false),
        Known::UnknownIssuer if is_self_signed(own) => (18, "self-signed certificate", true),
        Known::UnknownIssuer if others.iter().any(|other| is_self_signed(other)) => {
            (19, "self-signed certificate in certificate chain", true)
        }
        Known::UnknownIssuer if others.is_empty() => {
            (21, "unable to verify the first certificate", true)
        }
        Known::UnknownIssuer => (20, "unable to get local issuer certificate", true),
        Known::CaUsedAsEndEntity if is_self_signed(own) => (18, "self-signed certificate", true),
        Known::CaUsedAsEndEntity => (26, "unsuitable certificate purpose", false),
        Known::UnsupportedCertVersion => (50, "certificate of another version than 3", false),
        Known::InvalidSignatureForPublicKey => (7, "certificate signature failure", false),
        Known::NameConstraintViolation => (47, "permitted subtree violation", false),
        _ => (28, "certificate rejected", false),
    };
    Verified::Failed {
        code,
        reason,
        is_untrusted,
    }
}

fn is_self_signed(certificate: &CertificateDer<'_>) -> bool {
    let facts = crate::certificate_facts::CertificateFacts::parse(certificate);
    facts.is_some_and(|facts| facts.subject == facts.issuer)
}

/// Lets every certificate pass that its client has the key of.
#[derive(Debug)]
pub(crate) struct AnyCertificate(pub(crate) ClientCheck);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.0.0.hints
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature::note_peer(signed.scheme);
        verify_tls12_signature(message, certificate, signed, &self.0.0.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signature::note_peer(signed.scheme);
        verify_tls13_signature(message, certificate, signed, &self.0.0.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.0.algorithms.supported_schemes()
    }
}

impl fmt::Debug for ClientCheck {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ClientCheck({} trusted)", self.0.anchors.len())
    }
}
