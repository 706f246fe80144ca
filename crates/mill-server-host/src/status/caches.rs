//! The table of caches. All workers share them: no worker thread is asked.

use mill_server::cache::{CacheFigures, CacheOutcome, CacheZone, DiskReport};
use mill_server::site::Site;
use mill_status::tables::{Cache, CacheAnswers, CacheDisk, CacheObject};

/// Each cache; with its largest objects, which costs a look at all, if they are wanted.
pub(crate) fn rows(site: &Site, with_largest: bool) -> Vec<Cache> {
    let zones = site.caches.iter();
    let count = if with_largest { LARGEST } else { 0 };
    zones.map(|zone| row(zone, count)).collect()
}

fn row(zone: &CacheZone, largest: usize) -> Cache {
    let config = zone.config();
    let figures = zone.figures();
    let store = &figures.store;
    let largest = match largest {
        0 => Vec::new(),
        count => zone.largest(count),
    };
    let largest = largest.into_iter().map(|(key, bytes)| CacheObject {
        key: shown(&key),
        bytes,
    });
    Cache {
        name: config.zone.display().into_owned(),
        protocol: config.protocol.prefix().to_owned(),
        objects: store.objects,
        objects_max: zone.objects_max(),
        bytes: store.bytes,
        bytes_max: config.memory_bytes,
        hit: answers(&figures, CacheOutcome::Hit),
        stale: answers(&figures, CacheOutcome::Stale),
        updating: answers(&figures, CacheOutcome::Updating),
        revalidated: answers(&figures, CacheOutcome::Revalidated),
        miss: answers(&figures, CacheOutcome::Miss),
        expired: answers(&figures, CacheOutcome::Expired),
        bypass: answers(&figures, CacheOutcome::Bypass),
        filling: store.claims + store.growing,
        filling_bytes: store.filling_bytes,
        filled: store.stored,
        collapsed: store.waited,
        passes: store.passes,
        purges: store.purges,
        purges_pending: store.pending_purges,
        left_room: store.evicted,
        left_inactive: store.inactive,
        left_purged: store.purged,
        left_replaced: store.replaced,
        left_unfinished: store.unfinished,
        disk: figures.disk.as_ref().map(disk),
        largest: largest.collect(),
    }
}

fn disk(report: &DiskReport) -> CacheDisk {
    CacheDisk {
        files: report.index.files,
        bytes: report.index.bytes,
        bytes_max: Some(report.bytes_max).filter(|bytes| *bytes != u64::MAX),
        cold: !report.is_loaded,
        written: report.written,
        written_bytes: report.written_bytes,
        queued: report.queued,
        restored: report.restored,
        skipped: report.skipped,
        failed: report.failed,
        damaged: report.damaged,
        left_room: report.index.evicted,
        left_inactive: report.index.inactive,
        purges: report.purges,
    }
}

fn answers(figures: &CacheFigures, outcome: CacheOutcome) -> CacheAnswers {
    let figures = figures.of(outcome);
    CacheAnswers {
        responses: figures.responses,
        bytes: figures.bytes,
    }
}

/// A key is what clients have sent: on a terminal it must do nothing.
fn shown(key: &[u8]) -> String {
    match key.get(..KEY_BYTES_MAX) {
        Some(cut) if key.len() > cut.len() => format!("{}…", cut.escape_ascii()),
        _ => key.escape_ascii().to_string(),
    }
}

/// Objects that are told of one cache.
const LARGEST: usize = 10;

/// Bytes of a key that are told.
const KEY_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_without_control_characters_and_not_for_ever() {
        assert_eq!(shown(b"http://a/\x1b[2J"), r"http://a/\x1b[2J");
        assert_eq!(shown(&[b'a'; KEY_BYTES_MAX]).len(), KEY_BYTES_MAX);
        assert!(shown(&[b'a'; KEY_BYTES_MAX + 1]).ends_with("a…"));
    }
}
