//! TLS between clients and a proxy, and between the proxy and origins.
//!
//! What is sealed differs in each run, as keys come from the system's randomness; how long it is does not: keys and
//! signatures of Ed25519, X25519 and ML-KEM have one length each. So a seed gives the same segments, but for their bytes.

use mill_runtime::stream::Stream;
use mill_tls::certificate::load_made;
use mill_tls::client_context::{ClientContext, ClientSettings};
use mill_tls::client_hello::ClientHello;
use mill_tls::record::PLAIN_BYTES_MAX;
use mill_tls::server_check::Trusted;
use mill_tls::server_context::{Choice, ServerChoice, ServerContext, ServerSettings, Sessions};
use mill_tls::transport::Transport;
use mill_tls::worker::TlsWorker;
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use std::rc::Rc;
use std::sync::LazyLock;
use std::task::Poll;

/// How clients speak TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secured {
    /// 1.2 at most.
    pub is_tls12: bool,
    /// Clients come back with sessions.
    pub resumes: bool,
}

/// What one client needs for it.
#[derive(Debug)]
pub(super) struct Securing {
    context: ClientContext,
    is_http2: bool,
    worker: TlsWorker,
}

impl Securing {
    pub(super) fn new(secured: Secured, is_http2: bool) -> Self {
        let settings = ClientSettings {
            tls12: secured.is_tls12,
            tls13: !secured.is_tls12,
            ciphers: None,
            groups: None,
            trusted: Some(Trusted {
                roots: PAIR.certificate.as_bytes(),
                revocation_lists: None,
                depth: 1,
            }),
            certified: None,
            sends_name: true,
            resumes: secured.resumes,
            keeps_many: false,
            early_data: false,
            key_log: None,
        };
        let context = ClientContext::new(settings);
        Self {
            context: context.unwrap_or_else(|error| panic!("a client cannot be secured: {error}")),
            is_http2,
            worker: TlsWorker::new(),
        }
    }

    /// TLS over a connection; the handshake is yet to come.
    pub(super) fn over<S: Stream>(&self, stream: S) -> Transport<S> {
        let (config, name) = self.context.for_server(NAME.as_bytes(), self.is_http2);
        let secured = Transport::client(stream, config, name, self.worker.clone());
        secured.begin_tls();
        secured
    }
}

/// What an origin needs for it.
pub(super) struct Certificate {
    choice: Rc<Only>,
    worker: TlsWorker,
}

/// One server for all names.
#[derive(Debug)]
struct Only(ServerContext);

impl ServerChoice for Only {
    fn poll_choose(&self, _: &ClientHello) -> Poll<Choice> {
        Poll::Ready(Choice::Take(self.0.clone()))
    }
}

impl Certificate {
    pub(super) fn new() -> Self {
        let Pair { certificate, key } = &*PAIR;
        let certified = load_made(certificate.as_bytes(), key.as_bytes());
        let certified = certified.unwrap_or_else(|error| panic!("its own certificate: {error:?}"));
        let settings = ServerSettings {
            certified: vec![certified],
            tls12: true,
            tls13: true,
            ciphers: None,
            groups: None,
            prefers_own_order: false,
            tickets: true,
            ticket_keys: Vec::new(),
            ticket_secret: None,
            session_zone: None,
            session_lifetime: 300,
            early_data: false,
            client_check: None,
            key_log: None,
            record_bytes_max: PLAIN_BYTES_MAX,
            compresses_certificates: false,
        };
        let context = ServerContext::new(settings, &Sessions::default());
        let context =
            context.unwrap_or_else(|error| panic!("an origin cannot be secured: {error}"));
        Self {
            choice: Rc::new(Only(context)),
            worker: TlsWorker::new(),
        }
    }

    /// TLS over a connection; the handshake is yet to come.
    pub(super) fn over<S: Stream>(&self, stream: S) -> Transport<S> {
        let choice: Rc<dyn ServerChoice> = Rc::<Only>::clone(&self.choice);
        let secured = Transport::server(stream, choice, self.worker.clone());
        secured.begin_tls();
        secured
    }
}

/// The directives of a server that has the certificate.
pub(super) fn directives() -> String {
    let Pair { certificate, key } = &*PAIR;
    format!("ssl_certificate \"data:{certificate}\"; ssl_certificate_key \"data:{key}\";")
}

/// A certificate that signs itself, and its key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

static PAIR: LazyLock<Pair> = LazyLock::new(|| {
    let certify = || {
        let key = KeyPair::generate_for(&PKCS_ED25519)?;
        let mut params = CertificateParams::new(vec![NAME.to_owned()])?;
        // One that is made of the key is not always of the same length.
        params.serial_number = Some(1_u64.into());
        let certificate = params.self_signed(&key)?.pem();
        let key = key.serialize_pem();
        Ok(Pair { certificate, key })
    };
    certify().unwrap_or_else(|error: rcgen::Error| panic!("no certificate can be made: {error}"))
});

const NAME: &str = "world";
