//! The table of groups of servers. Their figures are shared by the worker threads: none of these is asked.

use mill_config::config::upstream::ResponseTime;
use mill_runtime::time::Instant;
use mill_server::site::Site;
use mill_status::tables::UpstreamServer;
use mill_upstream::peer::Peer;

/// Each server of each group; a group of `stream` says so.
pub(crate) fn rows(site: &Site, now: Instant) -> Vec<UpstreamServer> {
    let http = site.upstreams.iter().map(|group| (group, group.label()));
    let stream = site.stream_upstreams.iter();
    let stream = stream.map(|group| (group, format!("stream {}", group.label())));
    let rows = http.chain(stream).flat_map(|(group, label)| {
        let peers = group.peers();
        let rows = peers.all().map(|peer| row(&label, peer, now));
        rows.collect::<Vec<_>>()
    });
    rows.collect()
}

fn row(group: &str, peer: &Peer, now: Instant) -> UpstreamServer {
    let counts = peer.load().counts(now);
    let header = peer.load().latency(ResponseTime::Header);
    let last_byte = peer.load().latency(ResponseTime::LastByte);
    let us = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let checks = counts.health_checks;
    UpstreamServer {
        group: group.to_owned(),
        server: peer.name.display().into_owned(),
        id: peer.id,
        state: peer.state(now).to_string(),
        weight: peer.settings.weight,
        is_backup: peer.settings.backup,
        active: peer.active(),
        requests: counts.requests,
        answers: counts.answers,
        fails: counts.failures,
        checks: checks.checks,
        checks_failed: checks.fails,
        last_check_passed: checks.last_passed,
        header_p50_us: header.quantile(500).map(us),
        header_p99_us: header.quantile(990).map(us),
        response_p50_us: last_byte.quantile(500).map(us),
        response_p99_us: last_byte.quantile(990).map(us),
    }
}
