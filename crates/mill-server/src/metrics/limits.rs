//! Zones of `limit_req` and `limit_conn` in the text format of Prometheus: families `millstream_limit_req_…`, `millstream_limit_conn_…` and
//! `millstream_stream_limit_conn_…`, with the label `zone`.

use super::families::{Families, escaped};
use crate::limits::{LimitZones, LimitedConnections};
use mill_config::Text;

/// Appends all zones; nothing if there are none.
pub(super) fn render(zones: &LimitZones, out: &mut String) {
    let requests = zones.requests.iter().map(|zone| {
        let figures = zone.figures();
        let by_outcome = vec![
            ("passed", figures.passed),
            ("delayed", figures.delayed),
            ("rejected", figures.rejected),
            ("delayed_dry_run", figures.delayed_dry_run),
            ("rejected_dry_run", figures.rejected_dry_run),
        ];
        Sample::new(&zone.config.name, figures.keys, by_outcome)
    });
    let prefix = "millstream_limit_req_";
    family(
        &mut Families { prefix, out },
        "requests_total",
        &requests.collect::<Vec<_>>(),
    );
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

fn samples(zones: &[LimitedConnections]) -> Vec<Sample> {
    let sample = |zone: &LimitedConnections| {
        let figures = zone.figures();
        let by_outcome = vec![
            ("passed", figures.passed),
            ("rejected", figures.rejected),
            ("rejected_dry_run", figures.rejected_dry_run),
        ];
        Sample::new(&zone.config.name, figures.keys, by_outcome)
    };
    zones.iter().map(sample).collect()
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
    fn new(name: &Text, keys: u64, by_outcome: Vec<(&'static str, u64)>) -> Self {
        Self {
            labels: format!("zone=\"{}\"", escaped(&name.display())),
            keys,
            by_outcome,
        }
    }
}
