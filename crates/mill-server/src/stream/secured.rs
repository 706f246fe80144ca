//! The handshake of TLS with a client: `listen … ssl`.

use super::SessionStatus;
use super::session::Session;
use crate::connection::Connection;
use crate::local::Local;
use crate::tls::revocation::{Asking, words};
use mill_config::config::LogLevel;
use mill_config::config::settings::{ClientOcsp, VerifyClient};
use mill_runtime::engine::Engine;
use mill_runtime::stream::{Stream, StreamError};
use mill_tls::client_check::Verified;
use mill_tls::facts::TlsFacts;
use mill_tls::handshake::Fault;
use mill_tls::transport::TransportOf;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Waits for its end; in clear it is over at once.
pub(super) async fn handshake<E: Engine>(
    session: &mut Session,
    connection: &mut Connection<E>,
    local: &Rc<Local<E>>,
) -> Result<(), SessionStatus> {
    let near = connection.stream();
    if let TransportOf::<E>::Tcp(_) = near {
        return Ok(());
    }
    let timeout = session.server.settings.stream.handshake_timeout;
    let deadline = local.scheduler.now() + timeout;
    let shaken = poll_fn(|_| match near.poll_drained(0) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending => local.scheduler.poll_deadline(deadline).map(|_| None),
    });
    match shaken.await {
        Some(Ok(())) if near.is_clear_where_tls_was_due() => {
            fail(Fault::NotTls, StreamError::Tls, session, local);
            return Err(SessionStatus::INTERNAL);
        }
        Some(Ok(())) => {}
        Some(Err(error)) => {
            fail(
                near.tls_fault().unwrap_or(Fault::Closed),
                error,
                session,
                local,
            );
            return Err(SessionStatus::INTERNAL);
        }
        None => {
            let line = format_args!("SSL handshake timed out (110: Connection timed out)");
            session.log_error(LogLevel::Info, line, local);
            return Err(SessionStatus::INTERNAL);
        }
    }
    session.facts = connection.facts(true);
    let Some(facts) = session.facts.tls.get() else {
        return Ok(());
    };
    check_certificate(session, facts, local)?;
    let settings = &session.server.settings.tls;
    if settings.ocsp == ClientOcsp::Off || facts.verified != Verified::Success {
        return Ok(());
    }
    // A box of its own: other sessions don't hold the memory of a question.
    Box::pin(check_revocation(session, facts, local)).await
}

fn fail<E: Engine>(fault: Fault, error: StreamError, session: &Session, local: &Local<E>) {
    let doing = "while SSL handshaking";
    let line = match fault {
        Fault::Closed if error == StreamError::Reset => {
            format!("{fault} (104: Connection reset by peer) {doing}")
        }
        Fault::Closed => format!("{fault} {doing}"),
        _ => format!("SSL_do_handshake() failed (SSL: {fault}) {doing}"),
    };
    session.log_error(LogLevel::Info, format_args!("{line}"), local);
}

/// `ssl_verify_client`.
fn check_certificate<E: Engine>(
    session: &Session,
    facts: &TlsFacts,
    local: &Local<E>,
) -> Result<(), SessionStatus> {
    let wanted = session.server.settings.tls.verify_client;
    let line = match &facts.verified {
        _ if wanted == VerifyClient::Off => return Ok(()),
        Verified::Failed {
            is_untrusted: true, ..
        } if wanted == VerifyClient::OptionalNoCa => return Ok(()),
        Verified::Failed { code, reason, .. } => {
            format!("client SSL certificate verify error: ({code}:{reason})")
        }
        Verified::None if wanted == VerifyClient::On => {
            String::from("client sent no required SSL certificate")
        }
        _ => return Ok(()),
    };
    let line = format_args!("{line} while SSL handshaking");
    session.log_error(LogLevel::Info, line, local);
    Err(SessionStatus::INTERNAL)
}

/// `ssl_ocsp`. Without an answer the client is refused.
async fn check_revocation<E: Engine>(
    session: &Session,
    facts: &TlsFacts,
    local: &Local<E>,
) -> Result<(), SessionStatus> {
    let settings = &session.server.settings;
    let asking = Asking {
        site: &session.site,
        settings: &settings.tls,
        resolver: &settings.resolver,
        log: &|level, line| session.log_error(level, line, local),
    };
    let Some(words) = words(asking.about(facts, local).await) else {
        return Ok(());
    };
    let line = format_args!("client SSL certificate verify error: {words} while SSL handshaking");
    session.log_error(LogLevel::Info, line, local);
    Err(SessionStatus::INTERNAL)
}
