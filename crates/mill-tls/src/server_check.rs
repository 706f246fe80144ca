//! What a client checks of a server's certificate.

use crate::self_signed::{Found, SelfSigned};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;
use webpki::{EndEntityCert, KeyUsage};

/// What servers' certificates have to lead to; in PEM.
#[derive(Debug)]
pub struct Trusted<'a> {
    pub roots: &'a [u8],
    pub revocation_lists: Option<&'a [u8]>,
    /// Certificates between a server's and a trusted one, at most; webpki takes no more than six in any case.
    pub depth: usize,
}

/// Takes certificates that lead to a trusted one, and those that are trusted themselves.
#[derive(Debug)]
pub(crate) struct ServerCheck {
    self_signed: SelfSigned,
    chains: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
    provider: Arc<CryptoProvider>,
    depth: usize,
}

impl ServerCheck {
    /// The error says what is wrong with the texts.
    pub(crate) fn new(
        trusted: &Trusted<'_>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut self_signed = SelfSigned::default();
        if trusted.revocation_lists.is_none() {
            self_signed.add(trusted.roots);
        }
        let roots = Arc::new(roots(trusted.roots)?);
        let mut builder =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        if let Some(lists) = trusted.revocation_lists {
            let lists: Result<Vec<_>, _> =
                CertificateRevocationListDer::pem_slice_iter(lists).collect();
            builder = builder.with_crls(lists.map_err(|error| error.to_string())?);
        }
        Ok(Self {
            self_signed,
            chains: builder.build().map_err(|error| error.to_string())?,
            roots,
            provider,
            depth: trusted.depth,
        })
    }

    /// Checks that a valid certificate leads to a trusted one in as many steps as are allowed. rustls does not tell the path that
    /// it has found, so it is looked for again, but only where the server has sent more certificates than the path may have.
    fn check_depth(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        if others.len() <= self.depth {
            return Ok(());
        }
        let is_short =
            |path: &webpki::VerifiedPath<'_>| match path.intermediate_certificates().count()
                > self.depth
            {
                true => Err(webpki::Error::MaximumPathDepthExceeded),
                false => Ok(()),
            };
        let certificate = EndEntityCert::try_from(own);
        let found = certificate.and_then(|certificate| {
            certificate
                .verify_for_usage(
                    self.provider.signature_verification_algorithms.all,
                    &self.roots.roots,
                    others,
                    now,
                    KeyUsage::server_auth(),
                    None,
                    Some(&is_short),
                )
                .map(|_| ())
        });
        // As OpenSSL reports it: a chain that is cut off lacks its authority.
        found.map_err(|_| Error::InvalidCertificate(CertificateError::UnknownIssuer))
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    match roots.is_empty() {
        true => Err(String::from("there is no certificate in it (PEM)")),
        false => Ok(roots),
    }
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.self_signed.find(own, now) {
            Found::Unknown => {
                let chains = &self.chains;
                let found = chains.verify_server_cert(own, others, name, ocsp_response, now)?;
                self.check_depth(own, others, now)?;
                return Ok(found);
            }
            Found::Valid => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                return Ok(ServerCertVerified::assertion());
            }
            Found::NotYetValid => CertificateError::NotValidYet,
            Found::Expired => CertificateError::Expired,
        };
        Err(Error::InvalidCertificate(error))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chains).verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chains).verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_context::provider;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    /// Parameters of an authority.
    fn authority(name: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    }

    /// A trusted certificate, one of a.example, and the two which lead from it to the trusted one.
    fn chain() -> (
        String,
        CertificateDer<'static>,
        [CertificateDer<'static>; 2],
    ) {
        let [root_key, upper_key, lower_key, key] =
            std::array::from_fn(|_| KeyPair::generate().unwrap());
        let root_pem = authority("root").self_signed(&root_key).unwrap().pem();
        let root = Issuer::new(authority("root"), &root_key);
        let upper = authority("upper").signed_by(&upper_key, &root).unwrap();
        let upper_issuer = Issuer::new(authority("upper"), &upper_key);
        let lower = authority("lower")
            .signed_by(&lower_key, &upper_issuer)
            .unwrap();
        let lower_issuer = Issuer::new(authority("lower"), &lower_key);
        let own = CertificateParams::new(vec![String::from("a.example")]).unwrap();
        let own = own.signed_by(&key, &lower_issuer).unwrap();
        let der = |certificate: &rcgen::Certificate| certificate.der().clone();
        (root_pem, der(&own), [der(&lower), der(&upper)])
    }

    #[test]
    fn chains_have_as_many_certificates_as_are_allowed() {
        let (root, own, between) = chain();
        let verify = |depth| {
            let trusted = Trusted {
                roots: root.as_bytes(),
                revocation_lists: None,
                depth,
            };
            let check = ServerCheck::new(&trusted, Arc::new(provider(None, None))).unwrap();
            let name = ServerName::try_from("a.example").unwrap();
            let found = check.verify_server_cert(&own, &between, &name, &[], UnixTime::now());
            found.map(|_| ())
        };
        assert_eq!(verify(2), Ok(()));
        assert_eq!(verify(6), Ok(()));
        let cut_off = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        assert_eq!(verify(1), Err(cut_off.clone()));
        assert_eq!(verify(0), Err(cut_off));
    }
}
