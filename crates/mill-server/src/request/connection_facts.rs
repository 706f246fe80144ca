//! What a request knows of its connection.

use crate::challenge::Misses;
use crate::listener_context::ListenerContext;
use mill_runtime::address::Address;
use mill_runtime::stream::TransportInfo;
use mill_runtime::time::Instant;
use mill_tls::facts::TlsFacts;
use mill_upstream::proxy_protocol;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// Facts about a connection that do not change.
#[derive(Clone, Debug)]
pub struct ConnectionFacts {
    /// Unique within the server process: `$connection`.
    pub number: u64,
    /// Which of the worker's listeners accepted it: `ListenerContext::id`.
    pub listener: u32,
    pub peer: Address,
    /// The address of its near end, once a request has needed more than the listener's.
    pub reached: OnceCell<Address>,
    /// The listener's address.
    pub listening_at: Address,
    /// The header of the PROXY protocol before its first request.
    pub proxy_header: Option<Box<[u8]>>,
    /// What its handshake has agreed on, once it is over.
    pub tls: OnceCell<Rc<TlsFacts>>,
    /// It speaks plain HTTP to a port where a handshake was due.
    pub lacks_tls: Cell<bool>,
    /// The transport's measurements for `$tcpinfo_…`: updated by the connection for each request of a site that
    /// [mentions](crate::variables::mention::Mentions) one of them.
    pub transport: Cell<Option<TransportInfo>>,
    /// How often it has asked without the cookie of `challenge_cookie`.
    pub misses: Misses,
    pub started: Instant,
    /// No limit of `frang` holds for it, whichever client its requests are from.
    pub is_free: bool,
}

impl ConnectionFacts {
    /// Of a connection that was just accepted.
    pub(crate) fn new(
        number: u64,
        listener: &ListenerContext,
        peer: Address,
        started: Instant,
    ) -> Self {
        Self {
            number,
            listener: listener.id,
            peer,
            reached: OnceCell::new(),
            listening_at: listener.address.clone(),
            proxy_header: None,
            tls: OnceCell::new(),
            lacks_tls: Cell::new(false),
            transport: Cell::new(None),
            misses: Misses::default(),
            started,
            is_free: false,
        }
    }

    /// The address that the client has connected to. Where the listener has all addresses of the machine, and nothing in
    /// the configuration or the request asks which of them it was, the listener's.
    pub fn local(&self) -> &Address {
        self.reached.get().unwrap_or(&self.listening_at)
    }

    /// Whether only the connection itself can tell which address the client has connected to.
    pub(crate) fn is_local_unknown(&self) -> bool {
        match &self.listening_at {
            Address::Ip(address) => address.ip().is_unspecified() && self.reached.get().is_none(),
            Address::Unix(_) => false,
        }
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.get().is_some() {
            "https"
        } else {
            "http"
        }
    }

    /// The header of the PROXY protocol. Costs its parsing.
    pub fn proxy_header(&self) -> Option<proxy_protocol::Header<'_>> {
        let bytes = self.proxy_header.as_deref()?;
        proxy_protocol::parse(bytes).ok().flatten()
    }
}
