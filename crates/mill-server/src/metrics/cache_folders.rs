//! The folders of caches in the text format of Prometheus: families `millstream_cache_disk_…`, with the label `zone`.

use super::families::{Families, escaped};
use crate::cache::{CacheZones, DiskReport};

/// Appends the folders of all caches; nothing if none has one.
pub(super) fn render(zones: &CacheZones, out: &mut String) {
    let folders = zones.iter().filter_map(|zone| {
        let labels = format!("zone=\"{}\"", escaped(&zone.config().zone.display()));
        Some((labels, zone.figures().disk?))
    });
    let folders: Vec<(String, DiskReport)> = folders.collect();
    if folders.is_empty() {
        return;
    }
    let prefix = "millstream_cache_disk_";
    let mut families = Families { prefix, out };
    for (name, kind, help, value) in FAMILIES {
        families.head(name, kind, help);
        for (labels, report) in &folders {
            families.line(format_args!("{name}{{{labels}}} {}", value(report)));
        }
    }
}

/// Name, kind, help, value.
type Family = (
    &'static str,
    &'static str,
    &'static str,
    fn(&DiskReport) -> u64,
);

const FAMILIES: [Family; 13] = [
    ("files", "gauge", "Files of objects.", |report| {
        report.index.files
    }),
    ("bytes", "gauge", "Octets that they take.", |report| {
        report.index.bytes
    }),
    (
        "loaded",
        "gauge",
        "1 once the files of earlier processes are all known.",
        |report| report.is_loaded.into(),
    ),
    (
        "queued",
        "gauge",
        "Objects that wait to be written.",
        |report| report.queued,
    ),
    (
        "purges",
        "gauge",
        "Purges that are kept until no file is left that they concern.",
        |report| report.purges,
    ),
    (
        "written_total",
        "counter",
        "Objects that were written.",
        |report| report.written,
    ),
    (
        "written_bytes_total",
        "counter",
        "Octets of their files.",
        |report| report.written_bytes,
    ),
    (
        "restored_total",
        "counter",
        "Objects that were read back into memory.",
        |report| report.restored,
    ),
    (
        "skipped_total",
        "counter",
        "Objects that were not written, because too many waited or one was too large.",
        |report| report.skipped,
    ),
    (
        "failed_total",
        "counter",
        "Objects that could not be written or read.",
        |report| report.failed,
    ),
    (
        "damaged_total",
        "counter",
        "Files that did not match their checksums, and were removed.",
        |report| report.damaged,
    ),
    (
        "evicted_total",
        "counter",
        "Files that left for want of room.",
        |report| report.index.evicted,
    ),
    (
        "inactive_total",
        "counter",
        "Files that left because nothing asked for them.",
        |report| report.index.inactive,
    ),
];
