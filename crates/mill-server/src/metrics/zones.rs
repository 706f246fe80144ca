//! Zones in the text format of Prometheus: families `millstream_server_zone_…` and `millstream_location_zone_…`, with the
//! label `zone`.

use super::families::{Families, escaped};
use crate::zones::counts::ZoneFigures;
use crate::zones::{Zone, Zones};

/// Appends all zones; nothing if there are none.
pub(super) fn render(zones: &Zones, out: &mut String) {
    let servers: Vec<Sample> = zones.servers().map(Sample::of).collect();
    let locations: Vec<Sample> = zones.locations().map(Sample::of).collect();
    if !servers.is_empty() {
        let mut families = Families {
            prefix: "millstream_server_zone_",
            out,
        };
        families.head("processing", "gauge", "Requests under way.");
        for Sample { labels, figures } in &servers {
            let value = figures.processing;
            families.line(format_args!("processing{{{labels}}} {value}"));
        }
        counted(&servers, &mut families);
    }
    if !locations.is_empty() {
        let mut families = Families {
            prefix: "millstream_location_zone_",
            out,
        };
        counted(&locations, &mut families);
    }
}

struct Sample {
    labels: String,
    figures: ZoneFigures,
}

impl Sample {
    fn of(zone: &Zone) -> Self {
        Self {
            labels: format!("zone=\"{}\"", escaped(&zone.name().display())),
            figures: zone.figures(),
        }
    }
}

/// What both kinds of zones have.
fn counted(samples: &[Sample], families: &mut Families<'_>) {
    type Value = fn(&ZoneFigures) -> u64;
    let counters: [(&str, &str, Value); 4] = [
        ("requests_total", "Requests.", |zone| zone.requests),
        (
            "discarded_total",
            "Requests that were over without an answer.",
            |zone| zone.discarded,
        ),
        (
            "received_bytes_total",
            "Octets of heads and content that clients have sent.",
            |zone| zone.received_bytes,
        ),
        (
            "sent_bytes_total",
            "Octets that were sent to clients.",
            |zone| zone.sent_bytes,
        ),
    ];
    for (name, help, value) in counters {
        families.head(name, "counter", help);
        for Sample { labels, figures } in samples {
            families.line(format_args!("{name}{{{labels}}} {}", value(figures)));
        }
    }
    let help = "Answers, by the class of their status.";
    families.head("responses_total", "counter", help);
    for Sample { labels, figures } in samples {
        families.classes(labels, figures.by_class());
    }
    let help = "Time from the first octet of a request to the end of its answer.";
    families.head("request_seconds", "histogram", help);
    for Sample { labels, figures } in samples {
        families.histogram("request_seconds", labels, &figures.latency);
    }
}
