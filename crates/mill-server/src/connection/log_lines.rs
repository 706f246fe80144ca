//! What error logs say of a connection before its first request, between two, and of its handshake.

use super::Connection;
use mill_config::config::LogLevel;
use mill_runtime::engine::Engine;
use mill_runtime::stream::{Stream, StreamError};
use mill_tls::handshake::{Absence, Fault};
use std::fmt;

impl<E: Engine> Connection<E> {
    /// The client has sent FIN between two requests or before the first one.
    pub(super) fn log_end(&self) {
        if self.requests == 0 {
            self.log_info(format_args!(
                "client closed connection while {}",
                self.action()
            ));
        } else {
            let listener = (!self.listener.is_gone()).then(|| self.listener.listener());
            let peer = || self.stream.peer();
            self.local.log_keepalive_end(self.number, peer, listener);
        }
    }

    /// A handshake has failed, or a record could not be opened.
    #[cold]
    pub(super) fn log_tls_fault(&self, error: StreamError) {
        let Some(fault) = self.stream.tls_fault() else {
            return;
        };
        match fault {
            Fault::Closed if error == StreamError::Reset => self.log_info(format_args!(
                "{fault} (104: Connection reset by peer) while SSL handshaking"
            )),
            Fault::Closed => self.log_info(format_args!("{fault} while SSL handshaking")),
            Fault::Record(_) => self.log_info(format_args!(
                "SSL_read() failed (SSL: {fault}) while {}",
                self.action()
            )),
            Fault::NoCertificate(Absence::Awaited) => {
                let text = format_args!(
                    "cannot load certificate \"$acme_certificate\": {fault} while SSL handshaking"
                );
                self.log_error(LogLevel::Error, text);
            }
            Fault::NotTls
            | Fault::Rejected
            | Fault::NoCertificate(Absence::Unloadable)
            | Fault::FirstFlight(_)
            | Fault::Protocol(_) => self.log_info(format_args!(
                "SSL_do_handshake() failed (SSL: {fault}) while SSL handshaking"
            )),
        }
    }

    /// No byte of a request ever arrived.
    pub(super) fn log_silence(&self) {
        self.log_info(format_args!(
            "client timed out (110: Connection timed out) while {}",
            self.action()
        ));
    }

    pub(super) fn log_info(&self, message: fmt::Arguments<'_>) {
        self.log_error(LogLevel::Info, message);
    }

    pub(crate) fn log_error(&self, level: LogLevel, message: fmt::Arguments<'_>) {
        let listener = (!self.listener.is_gone()).then(|| self.listener.listener());
        let peer = || self.stream.peer();
        (self.local).log_connection_error(self.number, peer, listener, level, message);
    }

    /// What it does before its first request, for logs.
    pub(super) fn action(&self) -> &'static str {
        if self.awaits_proxy_header() {
            "reading PROXY protocol"
        } else if self.stream.is_handshaking() {
            "SSL handshaking"
        } else if self.requests > 0 {
            "keepalive"
        } else {
            "waiting for request"
        }
    }
}
