//! The table of limits. All workers share their zones: no worker thread is asked.

use mill_server::limits::LimitedConnections;
use mill_server::site::Site;
use mill_status::tables::Limit;

/// The zones of `limit_req`, of `limit_conn`, and of `limit_conn` in `stream`.
pub(crate) fn rows(site: &Site) -> Vec<Limit> {
    let limits = &site.limits;
    let requests = limits.requests.iter().map(|zone| {
        let figures = zone.figures();
        Limit {
            name: zone.config.name.display().into_owned(),
            kind: String::from("limit_req"),
            keys: figures.keys,
            passed: figures.passed,
            delayed: Some(figures.delayed),
            rejected: figures.rejected,
            dry_run: figures.delayed_dry_run + figures.rejected_dry_run,
        }
    });
    let connections = limits.connections.iter();
    let connections = connections.map(|zone| row("limit_conn", zone));
    let sessions = limits.sessions.iter();
    let sessions = sessions.map(|zone| row("limit_conn of stream", zone));
    requests.chain(connections).chain(sessions).collect()
}

fn row(kind: &str, zone: &LimitedConnections) -> Limit {
    let figures = zone.figures();
    Limit {
        name: zone.config.name.display().into_owned(),
        kind: String::from(kind),
        keys: figures.keys,
        passed: figures.passed,
        delayed: None,
        rejected: figures.rejected,
        dry_run: figures.rejected_dry_run,
    }
}
