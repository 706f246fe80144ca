//! Statistics that begin anew.

use super::error::ApiError;
use super::zones::Kind;
use super::{caches, frang, general, limits, resolvers, upstreams};
use crate::local::Local;
use crate::request::Request;
use mill_runtime::engine::Engine;

/// Carries out DELETE of what `path`, which is behind the version, stands for; `None` if it has no statistics.
pub(super) fn reset<E: Engine>(
    path: &[&str],
    request: &Request,
    local: &Local<E>,
) -> Option<Result<(), ApiError>> {
    let (site, baselines) = (&request.site, &request.site.baselines);
    match path {
        // Nothing is counted.
        ["processes" | "ssl"] => {}
        ["connections"] => baselines.reset_connections(None, &local.all_counters()),
        ["http", "requests"] => baselines.reset_requests(None, &local.all_counters()),
        ["workers"] => general::reset_workers(request, local),
        ["workers", id] => return Some(general::reset_worker(id, request, local)),
        ["resolvers", name] => return Some(resolvers::reset(name, &site.resolver_zones)),
        ["http", "upstreams", name] => {
            let group = upstreams::named(name, &site.upstreams);
            return Some(group.map(|group| group.reset_counts()));
        }
        ["http", "server_zones", name] => return Some(Kind::Servers.reset(name, &site.zones)),
        ["http", "location_zones", name] => return Some(Kind::Locations.reset(name, &site.zones)),
        ["http", "caches", name] => return Some(caches::reset(name, &site.caches)),
        ["http", "limit_reqs", name] => return Some(limits::reset(name, &site.limits.requests)),
        ["http", "limit_conns", name] => {
            return Some(limits::reset(name, &site.limits.connections));
        }
        ["stream", "limit_conns", name] => return Some(limits::reset(name, &site.limits.sessions)),
        ["http", "frang", "blocks"] => {
            return Some(frang::remove_all(request, local.scheduler.now()));
        }
        ["http", "frang", "blocks", address] => {
            return Some(frang::remove(address, request, local.scheduler.now()));
        }
        _ => return None,
    }
    Some(Ok(()))
}
