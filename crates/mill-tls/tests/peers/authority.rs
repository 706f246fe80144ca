//! Certificates for tests, and the settings of both sides.

use mill_tls::certificate::{Certified, load};
use mill_tls::client_context::{ClientContext, ClientSettings};
use mill_tls::client_hello::ClientHello;
use mill_tls::server_check::Trusted;
use mill_tls::server_context::{Choice, ServerChoice, ServerContext, ServerSettings, Sessions};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
    SupportedCipherSuite, SupportedProtocolVersion,
};
use std::sync::Arc;
use std::task::Poll;

/// A certificate that signs itself, and its key, in PEM.
fn certificate(is_rsa: bool) -> (String, String) {
    certificate_of("a.example", is_rsa)
}

fn certificate_of(name: &str, is_rsa: bool) -> (String, String) {
    let kind = if is_rsa {
        &PKCS_RSA_SHA256
    } else {
        &PKCS_ECDSA_P256_SHA256
    };
    let key = KeyPair::generate_for(kind).unwrap();
    let params = CertificateParams::new(vec![String::from(name)]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn certified(is_rsa: bool) -> Certified {
    let (certificate, key) = certificate(is_rsa);
    load(certificate.as_bytes(), key.as_bytes(), []).unwrap()
}

/// A server of rustls alone.
pub(crate) fn rustls_server(suite: SupportedCipherSuite) -> Arc<ServerConfig> {
    let (certificate, key) = certificate(format!("{suite:?}").contains("RSA"));
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap();
    Arc::new(
        builder
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap(),
    )
}

/// The settings of a client that trusts an authority which certified no server here.
pub(crate) fn wary_client() -> ClientContext {
    let roots = certificate(false).0;
    let settings = ClientSettings {
        tls12: true,
        tls13: true,
        ciphers: None,
        groups: None,
        trusted: Some(Trusted {
            roots: roots.as_bytes(),
            revocation_lists: None,
            depth: 1,
        }),
        certified: None,
        sends_name: true,
        resumes: true,
        keeps_many: false,
        early_data: false,
        key_log: None,
    };
    ClientContext::new(settings).unwrap()
}

/// The settings of a client that offers early data.
pub(crate) fn early_client() -> ClientContext {
    let settings = ClientSettings {
        tls12: true,
        tls13: true,
        ciphers: None,
        groups: None,
        trusted: None,
        certified: None,
        sends_name: true,
        resumes: true,
        keeps_many: true,
        early_data: true,
        key_log: None,
    };
    ClientContext::new(settings).unwrap()
}

/// A server with one certificate of each kind.
pub(crate) fn server() -> ServerContext {
    server_with(false)
}

/// The same, with early data or without.
pub(crate) fn server_with(early_data: bool) -> ServerContext {
    server_of(vec![certified(false), certified(true)], early_data, None)
}

/// A server with a certificate for each name, and these in DER.
pub(crate) fn server_of_names(names: &[&str]) -> (ServerContext, Vec<Vec<u8>>) {
    let made: Vec<_> = names
        .iter()
        .map(|name| certificate_of(name, false))
        .collect();
    let loaded = made
        .iter()
        .map(|(certificate, key)| load(certificate.as_bytes(), key.as_bytes(), []).unwrap());
    let ders = made.iter().map(|(certificate, _)| {
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        der.to_vec()
    });
    (server_of(loaded.collect(), false, None), ders.collect())
}

/// A server whose tickets are made from this.
pub(crate) fn server_of_secret(secret: &[u8]) -> ServerContext {
    server_of(vec![certified(false)], false, Some(secret))
}

fn server_of(
    certified: Vec<Certified>,
    early_data: bool,
    ticket_secret: Option<&[u8]>,
) -> ServerContext {
    let settings = ServerSettings {
        certified,
        tls12: true,
        tls13: true,
        ciphers: None,
        groups: None,
        prefers_own_order: false,
        tickets: true,
        ticket_keys: Vec::new(),
        ticket_secret,
        session_zone: None,
        session_lifetime: 300,
        early_data,
        record_bytes_max: usize::MAX,
        key_log: None,
        client_check: None,
        compresses_certificates: false,
    };
    ServerContext::new(settings, &Sessions::default()).unwrap()
}

/// A client that trusts everything.
pub(crate) fn client(
    suite: SupportedCipherSuite,
    version: &'static SupportedProtocolVersion,
) -> ClientConfig {
    let provider = CryptoProvider {
        cipher_suites: vec![suite],
        ..aws_lc_rs::default_provider()
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    config.enable_secret_extraction = true;
    config
}

/// Every suite with its version.
pub(crate) fn suites() -> Vec<(SupportedCipherSuite, &'static SupportedProtocolVersion)> {
    let all = aws_lc_rs::ALL_CIPHER_SUITES.iter();
    all.map(|suite| (*suite, suite.version())).collect()
}

/// The same server for any name.
#[derive(Debug)]
pub(crate) struct Only(pub(crate) ServerContext);

impl ServerChoice for Only {
    fn poll_choose(&self, hello: &ClientHello) -> Poll<Choice> {
        if hello.server_name.as_deref() == Some("nobody.example") {
            return Poll::Ready(Choice::Reject);
        }
        Poll::Ready(Choice::Take(self.0.clone()))
    }
}

#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
