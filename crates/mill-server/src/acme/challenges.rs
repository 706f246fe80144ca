//! What authorities are answered with when they look whether a name is ours, by any worker.

use crate::answer::Answer;
use crate::request::Request;
use crate::response::Response;
use mill_acme::challenge::{ALPN_PROTOCOL, ChallengeKind, Offer, PATH_PREFIX};
use mill_http::method::Method;
use mill_http::status::Status;
use mill_tls::certificate::load_made;
use mill_tls::client_hello::ClientHello;
use mill_tls::server_context::{ServerContext, ServerSettings, Sessions};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The answers that are laid out now.
#[derive(Debug, Default)]
pub(crate) struct Challenges {
    /// How many there are: without any, nothing is locked.
    count: AtomicUsize,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// Of http-01, by token.
    contents: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Of tls-alpn-01, by the name in the ClientHello.
    contexts: BTreeMap<String, ServerContext>,
}

/// The answer to a request of http-01; `None` if it is none, or not for a token of ours.
pub(crate) fn answer<File>(request: &mut Request) -> Option<Answer<File>> {
    if request.method != Method::Get {
        return None;
    }
    let content = request.site.tls.acme().challenges().content(&request.uri)?;
    request.pure = false;
    request.closing = true;
    let response = Response::with_bytes(Status::OK, b"text/plain", content);
    Some(Answer::Response(Box::new(response)))
}

/// An answer that is laid out for as long as this lives.
#[derive(Debug)]
pub(super) struct LaidOut {
    challenges: Arc<Challenges>,
    offer: Offer,
}

impl Challenges {
    /// Answers with this from now on. The error says why it cannot.
    pub(super) fn lay_out(self: &Arc<Self>, offer: Offer) -> Result<LaidOut, String> {
        match offer.kind {
            ChallengeKind::Http01 => {
                let token = offer.token.clone().into_bytes();
                let content = offer.key_authorization.clone().into_bytes();
                self.answers().contents.insert(token, content);
            }
            ChallengeKind::TlsAlpn01 => {
                let context = context(&offer)?;
                let name = offer.identifier.server_name();
                self.answers().contexts.insert(name, context);
            }
        }
        self.count.fetch_add(1, Ordering::Release);
        Ok(LaidOut {
            challenges: Arc::clone(self),
            offer,
        })
    }

    /// The content of http-01 for a path.
    fn content(&self, path: &[u8]) -> Option<Vec<u8>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let token = path.strip_prefix(PATH_PREFIX)?;
        self.answers().contents.get(token).cloned()
    }

    /// How to answer a handshake of tls-alpn-01; `None` if it is none, or not for a name of ours.
    pub(crate) fn context(&self, hello: &ClientHello) -> Option<ServerContext> {
        if self.count.load(Ordering::Acquire) == 0 || !is_asked_for(hello) {
            return None;
        }
        let name = hello.server_name.as_deref()?;
        self.answers().contexts.get(name).cloned()
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LaidOut {
    fn drop(&mut self) {
        let mut answers = self.challenges.answers();
        match self.offer.kind {
            ChallengeKind::Http01 => {
                answers.contents.remove(self.offer.token.as_bytes());
            }
            ChallengeKind::TlsAlpn01 => {
                answers
                    .contexts
                    .remove(&self.offer.identifier.server_name());
            }
        }
        drop(answers);
        self.challenges.count.fetch_sub(1, Ordering::Release);
    }
}

/// Such a client offers the protocol alone.
fn is_asked_for(hello: &ClientHello) -> bool {
    matches!(&hello.alpn[..], [only] if **only == *ALPN_PROTOCOL)
}

fn context(offer: &Offer) -> Result<ServerContext, String> {
    let (chain, key) = offer.certificate().map_err(|error| error.to_string())?;
    let certified = load_made(chain.as_bytes(), key.as_bytes());
    let settings = ServerSettings {
        certified: vec![certified.map_err(|error| error.to_string())?],
        tls12: true,
        tls13: true,
        ciphers: None,
        groups: None,
        prefers_own_order: false,
        tickets: false,
        ticket_keys: Vec::new(),
        ticket_secret: None,
        session_zone: None,
        session_lifetime: 0,
        client_check: None,
        compresses_certificates: false,
        early_data: false,
        key_log: None,
        record_bytes_max: usize::MAX,
    };
    let context = ServerContext::new(settings, &Sessions::default())?;
    Ok(context.with_protocols([ALPN_PROTOCOL.to_vec()].into_iter()))
}
