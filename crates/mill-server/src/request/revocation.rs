//! `ssl_ocsp` for requests: whether the client's certificate is revoked is asked before the first one of a connection is
//! handled. Without an answer the client is refused, as with nginx.

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::request::{Phase, Request};
use crate::tls::revocation::{Asking, words};
use mill_config::config::LogLevel;
use mill_config::config::settings::ClientOcsp;
use mill_http::status::Status as HttpStatus;
use mill_runtime::engine::Engine;
use mill_tls::client_check::Verified;
use mill_tls::facts::TlsFacts;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Whether a request has to wait for it.
pub(super) fn is_due(request: &Request) -> bool {
    let tls = request.connection.tls.get();
    let is_verified = |facts: &Rc<TlsFacts>| facts.verified == Verified::Success;
    request.server.location.tls.ocsp != ClientOcsp::Off && tls.is_some_and(is_verified)
}

/// Asks once for a connection, and refuses what is not known to be good.
pub(super) async fn check<E: Engine>(request: &Request, local: &Local<E>) -> Phase<FileOf<E>> {
    let Some(facts) = request.connection.tls.get().cloned() else {
        return ControlFlow::Continue(());
    };
    let found = match facts.revocation.get() {
        Some(found) => found,
        None => {
            let asking = Asking {
                site: &request.site,
                settings: &request.server.location.tls,
                resolver: &request.server.location.resolver,
                log: &|level, line| local.log_error(Some(request), level, line),
            };
            asking.about(&facts, local).await
        }
    };
    let Some(words) = words(found) else {
        return ControlFlow::Continue(());
    };
    let text = format_args!(
        "client SSL certificate verify error: {words} while reading client request headers"
    );
    local.log_error(Some(request), LogLevel::Info, text);
    ControlFlow::Break(Answer::Status(HttpStatus::CERTIFICATE_ERROR))
}
