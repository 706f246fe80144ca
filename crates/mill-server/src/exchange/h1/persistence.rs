//! Whether a connection stays open for another request: what the client asks for, and what settings and worker allow.

use crate::listener_context::ListenerContext;
use crate::local::Local;
use crate::request::Request;
use crate::user_agent;
use mill_config::config::settings::ConnectionSettings;
use mill_http::field::KnownField;
use mill_http::keep_alive::KeepAlive;
use mill_http::method::Method;
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;

/// The connection's requests and age.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Requests it has carried, the current one included.
    pub(crate) requests: u64,
    pub(crate) started: Instant,
}

impl Progress {
    /// Whether the settings and the worker allow another request, whatever the client asks for.
    #[inline]
    pub(crate) fn allows_another<E: Engine>(
        self,
        settings: &ConnectionSettings,
        local: &Local<E>,
    ) -> bool {
        self.rule(settings, local).allows() && !local.draining.get()
    }

    #[inline]
    fn rule<E: Engine>(self, settings: &ConnectionSettings, local: &Local<E>) -> KeepAlive {
        KeepAlive {
            is_enabled: !settings.keepalive_timeout.is_zero(),
            requests: self.requests,
            requests_max: settings.keepalive_requests,
            age: local.scheduler.now().since(self.started),
            age_max: settings.keepalive_time,
        }
    }
}

/// The connection stays open after the answer to this request, unless the answer says otherwise.
pub(crate) fn is_kept<E: Engine>(
    request: &Request,
    listener: &ListenerContext,
    local: &Local<E>,
) -> bool {
    let head = &request.message.head;
    let progress = Progress {
        requests: request.connection_requests,
        started: request.connection.started,
    };
    head.connection.persists(head.version)
        && progress.allows_another(&request.location.connection, local)
        && !is_disabled(request)
        && !listener.is_gone()
}

/// `keepalive_disable`: browsers that send a further request on a connection that is about to close, and do not repeat
/// it. Hot answers need no check: one is not given to Safari where `keepalive_disable` names it (`delivery/keep.rs`),
/// and old Internet Explorers matter only for POST.
fn is_disabled(request: &Request) -> bool {
    let disabled = request.location.connection.keepalive_disable;
    let head = &request.message.head;
    let Some(user_agent) = head.value(KnownField::UserAgent) else {
        return false;
    };
    let user_agent = user_agent.of(&request.message.bytes);
    (disabled.msie6 && head.method == Method::Post && user_agent::is_msie6(user_agent))
        || (disabled.safari && user_agent::is_safari(user_agent))
}
