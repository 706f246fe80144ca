//! Certificates that a handshake waits for, and what is known of the connection meanwhile.

use crate::local::Local;
use crate::request::ConnectionFacts;
use crate::tls::evaluated::{EvaluatedCertificates, PairNames};
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_tls::client_hello::ClientHello;
use mill_tls::facts::TlsFacts;
use mill_tls::handshake::Absence;
use mill_tls::server_context::{Choice, ServerContext};
use mill_tls::server_name::is_host_name;
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A connection whose handshake may wait.
pub(crate) struct Awaited<E: Engine> {
    local: Rc<Local<E>>,
    /// `None`: no name of a certificate has variables.
    facts: Option<ConnectionFacts>,
    /// Index into the sockets of the configuration, for the log.
    listener: usize,
    loading: RefCell<Option<Loading>>,
}

type Loading = Pin<Box<dyn Future<Output = Choice>>>;

impl<E: Engine> Awaited<E> {
    pub(crate) fn new(
        local: &Rc<Local<E>>,
        facts: Option<ConnectionFacts>,
        listener: usize,
    ) -> Self {
        Self {
            local: Rc::clone(local),
            facts,
            listener,
            loading: RefCell::default(),
        }
    }

    pub(super) fn local(&self) -> &Local<E> {
        &self.local
    }

    /// The connection with what its ClientHello tells. `None` if nothing is to be evaluated, also because the name is none
    /// that rustls takes: it refuses the handshake, and no path is made from it.
    pub(super) fn facts_with(&self, hello: &ClientHello) -> Option<Rc<ConnectionFacts>> {
        let facts = self.facts.as_ref()?;
        if !hello.server_name.as_deref().is_none_or(is_host_name) {
            return None;
        }
        let facts = facts.clone();
        let _ = facts.tls.set(Rc::new(TlsFacts {
            server_name: hello.server_name.clone(),
            offered_ciphers: hello.ciphers.as_slice().into(),
            offered_groups: hello.groups.as_slice().into(),
            ..TlsFacts::default()
        }));
        Some(Rc::new(facts))
    }

    /// Begins to load, for an answer by `context`.
    pub(super) fn load(
        &self,
        certificates: &Arc<EvaluatedCertificates>,
        names: Vec<PairNames>,
        context: &ServerContext,
    ) -> Poll<Choice> {
        let (local, context) = (Rc::clone(&self.local), context.clone());
        let certificates = Arc::clone(certificates);
        let facts = self.facts.as_ref();
        let client = facts.map(|facts| (facts.number, facts.peer.clone()));
        let listener = Some(self.listener);
        *self.loading.borrow_mut() = Some(Box::pin(async move {
            match certificates.load(names, &local).await {
                Ok(certified) => Choice::Take(context.with_certified(certified)),
                Err(reason) => {
                    if let Some((number, peer)) = client {
                        let line = format_args!("{reason} while SSL handshaking");
                        let peer = || peer.clone();
                        local.log_connection_error(number, peer, listener, LogLevel::Error, line);
                    }
                    Choice::NoCertificate(Absence::Unloadable)
                }
            }
        }));
        self.poll().unwrap_or(Poll::Pending)
    }

    /// `None`: nothing is being loaded. The task that asked is woken when there is more to do.
    pub(super) fn poll(&self) -> Option<Poll<Choice>> {
        let mut loading = self.loading.borrow_mut();
        // Futures of this program wake the current task, not a waker.
        let mut context = Context::from_waker(Waker::noop());
        let polled = loading.as_mut()?.as_mut().poll(&mut context);
        if polled.is_ready() {
            *loading = None;
        }
        Some(polled)
    }
}
