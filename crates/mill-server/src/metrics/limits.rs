//! Zones of `limit_req` and `limit_conn` in the text format of Prometheus: families `millstream_limit_req_…`, `millstream_limit_conn_…` and
//! `millstream_stream_limit_conn_…`, with the label `zone`.

use super::families::{Families, escaped};
use crate::limits::{LimitZones, LimitedZone, ZoneFigures, ZoneTable};

/// Appends all zones; nothing if there are none.
pub(super) fn render(zones: &LimitZones, out: &mut String) {
    let prefix = "millstream_limit_req_";
    let mut families = Families { prefix, out };
    family(&mut families, "requests_total", &samples(&zones.requests));
    let prefix = "millstream_limit_conn_";
    let mut families = Families { prefix, out };
    family(
        &mut families,
        "requests_total",
        &samples(&zones.connections),
    );
    let prefix = "millstream_stream_limit_conn_";
    let mut families = Families { prefix, out };
    family(&mut families, "sessions_total", &samples(&zones.sessions));
}

fn samples<T: ZoneTable>(zones: &[LimitedZone<T>]) -> Vec<Sample> {
    zones.iter().map(Sample::of).collect()
}

fn family(families: &mut Families<'_>, counted: &str, samples: &[Sample]) {
    if samples.is_empty() {
        return;
    }
    families.head("keys", "gauge", "Keys that the zone has.");
    for Sample { labels, keys, .. } in samples {
        families.line(format_args!("keys{{{labels}}} {keys}"));
    }
    families.head(
        counted,
        "counter",
        "What was counted, by what became of it.",
    );
    for sample in samples {
        let labels = &sample.labels;
        for (outcome, count) in &sample.by_outcome {
            families.line(format_args!(
                "{counted}{{{labels},outcome=\"{outcome}\"}} {count}"
            ));
        }
    }
}

struct Sample {
    labels: String,
    keys: u64,
    by_outcome: Vec<(&'static str, u64)>,
}

impl Sample {
    fn of<T: ZoneTable>(zone: &LimitedZone<T>) -> Self {
        let figures = zone.figures();
        Self {
            labels: format!("zone=\"{}\"", escaped(&zone.name().display())),
            keys: figures.keys(),
            by_outcome: figures.by_outcome(),
        }
    }
}
