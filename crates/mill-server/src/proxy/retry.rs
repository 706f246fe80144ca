//! What a failed try means: for the server, for the log, and for another try.

use super::Proxying;
use super::fault::{Fault, Step};
use super::tries::FailedTry;
use crate::request::Request;
use mill_config::config::LogLevel;
use mill_config::config::settings::NextUpstream;
use mill_runtime::engine::Engine;
use mill_upstream::select::Outcome;
use std::sync::Arc;

impl<E: Engine> Proxying<'_, E> {
    /// Tells the group how a try has ended, and logs it.
    pub(super) fn report(&self, failed: FailedTry, request: &Request) {
        let FailedTry {
            fault,
            selected,
            sent,
            ..
        } = failed;
        let server = Arc::clone(selected.peer());
        let now = self.local.scheduler.now();
        let blames_server = !matches!(
            fault,
            Fault::ClientGone(_)
                | Fault::Content(_)
                | Fault::NotSpelled
                | Fault::NotBound
                | Fault::NotBegun
                | Fault::Status(403 | 404)
        );
        let outcome = if blames_server {
            Outcome::Failed
        } else {
            Outcome::Unknown
        };
        let freed = self.group.freed();
        if selected.report(outcome, now) {
            let text = format_args!(
                "upstream server temporarily disabled while {}",
                fault.during()
            );
            self.local.log_error(Some(request), LogLevel::Warn, text);
        }
        drop(freed);
        // nginx knows no status of a server whose client has gone, or has sent what it should not.
        let is_of_client = matches!(fault, Fault::ClientGone(_) | Fault::Content(_));
        let status = Some(fault.status().0).filter(|_| !is_of_client);
        self.trace.ended(status, sent, now);
        if !matches!(
            fault,
            Fault::Content(_)
                | Fault::Status(_)
                | Fault::Logged
                | Fault::NotSecured
                | Fault::NotSpelled
                | Fault::NotBound
        ) {
            let text = fault.of(server.name.as_bytes());
            self.local
                .log_error(Some(request), fault.level(), format_args!("{text}"));
        }
    }

    /// Whether `proxy_next_upstream` names the status, and there is another server.
    pub(super) fn is_unwanted(&self, status: u16, request: &Request) -> bool {
        self.tries_left > 1 && self.may_try_another(Fault::Status(status), request)
    }

    /// Whether another server may be tried after this fault (`proxy_next_upstream`, RFC 9110 9.2.2).
    pub(super) fn may_try_another(&self, fault: Fault, request: &Request) -> bool {
        let settings = &self.settings;
        let timeout = settings.next_upstream_timeout;
        let now = self.local.scheduler.now();
        let is_in_time = timeout.is_zero() || now.since(self.started) < timeout;
        // A server that the request never reached has not acted on it.
        let reached = !matches!(
            fault,
            Fault::TimedOut(Step::Connecting)
                | Fault::Failed(Step::Connecting, _)
                | Fault::NotConnected(_)
                | Fault::NotSecured
                | Fault::NotBegun
        );
        let may_be_repeated = !reached
            || settings
                .next_upstream
                .contains(NextUpstream::NON_IDEMPOTENT)
            || is_idempotent(request.method_name());
        is_in_time
            && self.tries_left > 0
            && may_be_repeated
            && self.content.can_be_repeated()
            && fault
                .kind()
                .is_some_and(|kind| settings.next_upstream.contains(kind))
    }
}

/// Whether a request may be sent a second time although the first may have been acted on: RFC 9110 9.2.2, RFC 4918 9.
/// Nothing is known of other methods.
fn is_idempotent(method: &[u8]) -> bool {
    const IDEMPOTENT: [&[u8]; 12] = [
        b"GET",
        b"HEAD",
        b"PUT",
        b"DELETE",
        b"OPTIONS",
        b"TRACE",
        b"PROPFIND",
        b"PROPPATCH",
        b"MKCOL",
        b"COPY",
        b"MOVE",
        b"UNLOCK",
    ];
    IDEMPOTENT.contains(&method)
}
