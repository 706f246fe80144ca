//! `millstream_metrics`: all counters of all workers, in the text format of Prometheus.

/// Samples and their families.
mod families;

/// Groups of servers.
mod upstreams;

/// Certificates.
mod certificates;

/// Zones.
mod zones;

/// Caches.
mod cache_folders;
mod caches;

/// Limits of clients.
mod frang;
/// Limits.
mod limits;

use crate::answer::Answer;
use crate::local::{FileOf, Local};
use crate::request::Request;
use crate::response::Response;
use mill_http::method::Method;
use mill_http::status::Status;
use mill_metrics::WorkerFigures;
use mill_metrics::prometheus;
use mill_runtime::engine::Engine;

/// Answers GET and HEAD with each worker's published counters; this worker's are current.
pub fn respond<E: Engine>(request: &mut Request, local: &Local<E>) -> Answer<FileOf<E>> {
    if !matches!(request.method, Method::Get | Method::Head) {
        return Answer::method_not_allowed(local);
    }
    local.show_counters();
    let workers: Vec<WorkerFigures> = local.board.workers().collect();
    let now = local.scheduler.now();
    let mut text = prometheus::render(&workers, now.as_nanos());
    let site = &request.site;
    upstreams::render(&site.upstreams, &upstreams::HTTP, now, &mut text);
    upstreams::render(&site.stream_upstreams, &upstreams::STREAM, now, &mut text);
    zones::render(&site.zones, &mut text);
    caches::render(&site.caches, &mut text);
    cache_folders::render(&site.caches, &mut text);
    limits::render(&site.limits, &mut text);
    if let Some(frang) = &site.frang {
        frang::render(frang, now, &mut text);
    }
    certificates::render(site, &mut text);
    Answer::Response(Box::new(Response::with_bytes(
        Status::OK,
        prometheus::CONTENT_TYPE.as_bytes(),
        text.into_bytes(),
    )))
}
