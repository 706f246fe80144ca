//! The table of zones. Their counters are added up here: no worker thread is asked.

use mill_server::site::Site;
use mill_server::zones;
use mill_status::tables::Zone;

/// The zones of servers, then those of locations.
pub(crate) fn rows(site: &Site) -> Vec<Zone> {
    let servers = site.zones.servers().map(|zone| row("server", zone));
    let locations = site.zones.locations().map(|zone| Zone {
        processing: None,
        ..row("location", zone)
    });
    servers.chain(locations).collect()
}

fn row(kind: &str, zone: &zones::Zone) -> Zone {
    let figures = zone.figures();
    let us = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Zone {
        name: zone.name().display().into_owned(),
        kind: String::from(kind),
        processing: Some(figures.processing),
        requests: figures.requests,
        answers: figures.by_class(),
        discarded: figures.discarded,
        received_bytes: figures.received_bytes,
        sent_bytes: figures.sent_bytes,
        p50_us: figures.latency.quantile(500).map(us),
        p99_us: figures.latency.quantile(990).map(us),
    }
}
