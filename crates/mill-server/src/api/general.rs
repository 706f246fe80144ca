//! The server as a whole.

use super::Clock;
use super::error::ApiError;
use crate::local::Local;
use crate::product;
use crate::request::Request;
use mill_metrics::{ServerCounters, WorkerFigures};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use serde_json::{Value, json};

/// Version, process, configuration.
pub(super) fn nginx<E: Engine>(request: &Request, local: &Local<E>) -> Value {
    let clock = Clock::of(local);
    let address = match request.connection.local() {
        Address::Ip(address) => address.ip().to_string(),
        local @ Address::Unix(_) => local.to_string(),
    };
    json!({
        "version": product::VERSION,
        "build": product::NAME,
        "address": address,
        "generation": request.site.generation,
        "load_timestamp": clock.date(local.site_since.get()),
        "timestamp": clock.date(clock.now),
        "pid": local.environment.pid,
        "ppid": local.environment.parent_pid,
    })
}

/// Of clients: those of all workers, or of the one of this number.
pub(super) fn connections(
    counters: &ServerCounters,
    worker: Option<u32>,
    request: &Request,
) -> Value {
    let idle = counters.connections_waiting;
    let since = request.site.baselines.since(worker, counters);
    json!({
        "accepted": since.accepted,
        "dropped": since.dropped,
        "active": counters.connections_active.saturating_sub(idle),
        "idle": idle,
    })
}

/// All requests, and those under way.
pub(super) fn requests(counters: &ServerCounters, worker: Option<u32>, request: &Request) -> Value {
    json!({
        "total": request.site.baselines.since(worker, counters).requests,
        "current": counters.connections_reading + counters.connections_writing,
    })
}

/// There is no TLS yet: nothing has been counted.
pub(super) fn ssl() -> Value {
    json!({
        "handshakes": 0,
        "handshakes_failed": 0,
        "session_reuses": 0,
        "no_common_protocol": 0,
        "no_common_cipher": 0,
        "handshake_timeout": 0,
        "peer_rejected_cert": 0,
        "verify_failures": {
            "no_cert": 0, "expired_cert": 0, "revoked_cert": 0, "hostname_mismatch": 0, "other": 0,
        },
    })
}

/// Each worker that runs.
pub(super) fn workers<E: Engine>(request: &Request, local: &Local<E>) -> Value {
    running(local)
        .map(|worker| document(&worker, request))
        .collect()
}

/// The worker of this number.
pub(super) fn worker<E: Engine>(
    id: &str,
    request: &Request,
    local: &Local<E>,
) -> Result<Value, ApiError> {
    named(id, local).map(|worker| document(&worker, request))
}

/// The statistics of all workers begin anew.
pub(super) fn reset_workers<E: Engine>(request: &Request, local: &Local<E>) {
    running(local).for_each(|worker| reset(&worker, request));
}

/// Those of the worker of this number.
pub(super) fn reset_worker<E: Engine>(
    id: &str,
    request: &Request,
    local: &Local<E>,
) -> Result<(), ApiError> {
    named(id, local).map(|worker| reset(&worker, request))
}

fn reset(worker: &WorkerFigures, request: &Request) {
    let (baselines, number) = (&request.site.baselines, Some(worker.number));
    baselines.reset_connections(number, &worker.server);
    baselines.reset_requests(number, &worker.server);
}

fn named<E: Engine>(id: &str, local: &Local<E>) -> Result<WorkerFigures, ApiError> {
    let found = running(local).find(|worker| worker.number.to_string() == id);
    found.ok_or(ApiError::WORKER_NOT_FOUND)
}

fn running<E: Engine>(local: &Local<E>) -> impl Iterator<Item = WorkerFigures> {
    local.show_counters();
    local.board.workers().filter(|worker| !worker.has_ended)
}

fn document(worker: &WorkerFigures, request: &Request) -> Value {
    let number = Some(worker.number);
    json!({
        "id": worker.number,
        "pid": worker.beginning.thread,
        "connections": connections(&worker.server, number, request),
        "http": { "requests": requests(&worker.server, number, request) },
    })
}
