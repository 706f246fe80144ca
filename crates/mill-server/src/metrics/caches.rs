//! Caches in the text format of Prometheus: families `millstream_cache_…`, with the label `zone`.

use super::families::{Families, escaped};
use crate::cache::{CacheFigures, CacheOutcome, CacheZone, CacheZones};

/// Appends all caches; nothing if there are none.
pub(super) fn render(zones: &CacheZones, out: &mut String) {
    let samples: Vec<Sample> = zones.iter().map(|zone| Sample::of(zone)).collect();
    if samples.is_empty() {
        return;
    }
    let prefix = "millstream_cache_";
    let mut families = Families { prefix, out };
    for family in &FAMILIES {
        families.head(family.name, family.kind, family.help);
        for sample in &samples {
            let (name, labels, value) = (family.name, &sample.labels, (family.value)(sample));
            families.line(format_args!("{name}{{{labels}}} {value}"));
        }
    }
    let help = "Answers to requests, by what became of the look-up.";
    families.head("responses_total", "counter", help);
    by_outcome(&samples, &mut families, "responses_total", |sample, of| {
        sample.figures.of(of).responses
    });
    let help = "Octets of these answers.";
    families.head("response_bytes_total", "counter", help);
    by_outcome(
        &samples,
        &mut families,
        "response_bytes_total",
        |sample, of| sample.figures.of(of).bytes,
    );
    let help = "Objects that left the cache, by why they did.";
    families.head("evictions_total", "counter", help);
    for sample in &samples {
        let (labels, store) = (&sample.labels, &sample.figures.store);
        for (reason, count) in [
            ("room", store.evicted),
            ("inactive", store.inactive),
            ("purged", store.purged),
            ("replaced", store.replaced),
            ("unfinished", store.unfinished),
        ] {
            families.line(format_args!(
                "evictions_total{{{labels},reason=\"{reason}\"}} {count}"
            ));
        }
    }
}

fn by_outcome(
    samples: &[Sample],
    families: &mut Families<'_>,
    name: &str,
    value: impl Fn(&Sample, CacheOutcome) -> u64,
) {
    for sample in samples {
        for outcome in CacheOutcome::ALL {
            let (labels, value) = (&sample.labels, value(sample, outcome));
            let outcome = outcome.word().to_lowercase();
            families.line(format_args!(
                "{name}{{{labels},outcome=\"{outcome}\"}} {value}"
            ));
        }
    }
}

struct Sample {
    labels: String,
    bytes_max: u64,
    figures: CacheFigures,
}

impl Sample {
    fn of(zone: &CacheZone) -> Self {
        let config = zone.config();
        Self {
            labels: format!("zone=\"{}\"", escaped(&config.zone.display())),
            bytes_max: config.memory_bytes,
            figures: zone.figures(),
        }
    }

    fn answers(&self, are_of_cache: bool) -> u64 {
        let outcomes = CacheOutcome::ALL.into_iter();
        let wanted = outcomes.filter(|outcome| outcome.is_of_cache() == are_of_cache);
        wanted
            .map(|outcome| self.figures.of(outcome).responses)
            .sum()
    }
}

struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Sample) -> u64,
}

const FAMILIES: [Family; 11] = [
    Family {
        name: "objects",
        kind: "gauge",
        help: "Objects, also those that are being filled.",
        value: |sample| sample.figures.store.objects,
    },
    Family {
        name: "bytes",
        kind: "gauge",
        help: "Octets of memory that whole objects take.",
        value: |sample| sample.figures.store.bytes,
    },
    Family {
        name: "limit_bytes",
        kind: "gauge",
        help: "Octets of memory that they may take.",
        value: |sample| sample.bytes_max,
    },
    Family {
        name: "filling",
        kind: "gauge",
        help: "Fills under way.",
        value: |sample| sample.figures.store.claims + sample.figures.store.growing,
    },
    Family {
        name: "filling_bytes",
        kind: "gauge",
        help: "Octets of memory that fills under way take.",
        value: |sample| sample.figures.store.filling_bytes,
    },
    Family {
        name: "hits_total",
        kind: "counter",
        help: "Requests that were answered with what was kept.",
        value: |sample| sample.answers(true),
    },
    Family {
        name: "misses_total",
        kind: "counter",
        help: "Requests that were answered by a server, those that bypass the cache among them.",
        value: |sample| sample.answers(false),
    },
    Family {
        name: "fills_total",
        kind: "counter",
        help: "Objects that became whole, or were validated.",
        value: |sample| sample.figures.store.stored,
    },
    Family {
        name: "collapsed_total",
        kind: "counter",
        help: "Requests that found their answer being filled by another one.",
        value: |sample| sample.figures.store.waited,
    },
    Family {
        name: "passes_total",
        kind: "counter",
        help: "Requests and fills that went on without being stored, because of a limit.",
        value: |sample| sample.figures.store.passes,
    },
    Family {
        name: "purges_total",
        kind: "counter",
        help: "Purges, by a key, by its beginning, or by tags.",
        value: |sample| sample.figures.store.purges,
    },
];
