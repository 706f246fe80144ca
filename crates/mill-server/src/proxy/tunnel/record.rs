//! What is logged when a tunnel ends, in as few bytes as may be: most tunnels are idle for most of their time.

use crate::delivery;
use crate::limits::connections::Counted as CountedConnection;
use crate::local::Local;
use crate::log::access;
use crate::log::ahead::{AddedAtEnd, LinesAhead};
use crate::log::error::ErrorContext;
use crate::proxy::fault::Fault;
use crate::request::{Request, StoredContent};
use crate::zones::{self, Counted};
use mill_runtime::engine::Engine;
use mill_runtime::time::Instant;
use mill_upstream::peer::Peer;

/// A tunnel's request.
#[derive(Debug)]
pub(super) enum Record {
    /// The request is let go; what its lines say of it is kept.
    Ahead(Ahead),
    /// A line depends on more than that.
    Whole(Box<Request>),
}

#[derive(Debug)]
pub(super) struct Ahead {
    lines: LinesAhead,
    errors: ErrorContext,
    /// When the try at the server began, bytes of its answer's content and of its answer.
    tried: Instant,
    response_length: u64,
    received: u64,
    /// `None` where no zone counts it.
    zones: Option<Box<Counted>>,
    /// It goes on counting (`limit_conn`).
    _limited: Box<[CountedConnection]>,
}

/// What went through a tunnel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carried {
    pub(super) to_client: u64,
    /// With the request.
    pub(super) to_server: u64,
}

impl Record {
    pub(super) fn of<E: Engine>(mut request: Box<Request>, local: &Local<E>) -> Self {
        match Ahead::of(&mut request, local) {
            Some(ahead) => {
                delivery::release(request, local);
                Self::Ahead(ahead)
            }
            None => {
                request.shrink();
                Self::Whole(request)
            }
        }
    }

    /// Logs the request, and why the tunnel has ended if that is a fault.
    pub(super) fn log<E: Engine>(
        &mut self,
        carried: Carried,
        fault: Option<Fault>,
        peer: &Peer,
        local: &Local<E>,
    ) {
        match self {
            Self::Ahead(ahead) => ahead.log(carried, fault, peer, local),
            Self::Whole(request) => log_whole(request, carried, fault, local),
        }
    }
}

impl Ahead {
    fn of<E: Engine>(request: &mut Request, local: &Local<E>) -> Option<Self> {
        let removed = |content: &StoredContent| matches!(content, StoredContent::File { is_removed, .. } if *is_removed);
        if request.stored_content.as_deref().is_some_and(removed) {
            return None;
        }
        let (tried, response_length, received) = request.upstream.as_ref()?.only_try()?;
        Some(Self {
            lines: LinesAhead::begin(request, local)?,
            errors: local.error_context(request),
            tried,
            response_length,
            received,
            zones: Counted::of(request, local),
            _limited: request
                .limited
                .take()
                .map(|note| note.counted.into())
                .unwrap_or_default(),
        })
    }

    fn log<E: Engine>(
        &mut self,
        carried: Carried,
        fault: Option<Fault>,
        peer: &Peer,
        local: &Local<E>,
    ) {
        // The head of the answer was counted when the request was let go.
        peer.load()
            .count_bytes(carried.to_server, carried.to_client);
        if let Some(fault) = fault {
            let logs = &self.lines.settings().error_logs;
            let message = format_args!("{fault}");
            local.log_error_in(&self.errors, logs, fault.level(), message);
        }
        let added = AddedAtEnd {
            content_bytes: carried.to_client,
            is_complete: fault.is_none(),
            response_time: local.scheduler.now().since(self.tried),
            response_length: self.response_length + carried.to_client,
            received: self.received + carried.to_client,
            sent: carried.to_server,
        };
        self.lines.write(&added, local);
        if let Some(zones) = self.zones.take() {
            zones.end(carried.to_client, local);
        }
    }
}

fn log_whole<E: Engine>(
    request: &mut Request,
    carried: Carried,
    fault: Option<Fault>,
    local: &Local<E>,
) {
    request.sent.bytes += carried.to_client;
    request.sent.content_bytes += carried.to_client;
    if let Some(trace) = &request.upstream {
        trace.received(carried.to_client, carried.to_client);
        trace.ended(None, carried.to_server, local.scheduler.now());
    }
    request.sent.complete = fault.is_none();
    if let Some(fault) = fault {
        local.log_error(Some(request), fault.level(), format_args!("{fault}"));
    }
    access::write(request, local);
    zones::end(request, local);
    delivery::remove_content(request, local);
}
