//! The durations measured of a request, as histograms.

use crate::sample::Sample;
use core::time::Duration;
use mill_metrics::Histogram;

/// The durations of all answered requests of a thread, or of all threads.
///
/// ```text
///  intended      started     connected=sent   first byte        done
///     |- lateness -|--- connect ---|-- first byte --|             |
///     |            |               |--------- service ------------|
///     |            |----------------- raw ------------------------|
///     |------------------------ latency --------------------------|
///     |-------------------- ttfb -------------------|
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// From the intended start: what a user would have waited.
    pub latency: Histogram,
    /// From the actual start. In a closed loop it equals the latency, and is only kept there.
    pub raw: Option<Histogram>,
    /// From the intended start to the actual one; open loop only.
    pub lateness: Option<Histogram>,
    /// From sending to the end of the response.
    pub service: Histogram,
    /// From sending to the first byte of the response.
    pub first_byte: Histogram,
    /// From the intended start to the first byte of the response: lateness, connecting, the handshake of TLS and `first_byte`.
    pub ttfb: Histogram,
    /// Every connect, also those that no request waited for.
    pub connect: Histogram,
    /// Every handshake of TLS, behind connecting; empty in clear.
    pub tls: Histogram,
}

impl Measures {
    /// Empty histograms. `open_loop` is whether requests have due times of their own.
    pub fn new(open_loop: bool) -> Self {
        let optional = || open_loop.then(Histogram::new);
        Self {
            latency: Histogram::new(),
            raw: optional(),
            lateness: optional(),
            service: Histogram::new(),
            first_byte: Histogram::new(),
            ttfb: Histogram::new(),
            connect: Histogram::new(),
            tls: Histogram::new(),
        }
    }

    /// The time from the actual start, in either loop.
    pub fn raw(&self) -> &Histogram {
        self.raw.as_ref().unwrap_or(&self.latency)
    }

    /// Whether all durations of a request equal its latency: it was sent when it was started, and its answer arrived in
    /// one piece.
    pub(crate) fn are_alike(&self, sample: &Sample) -> bool {
        let is_sent_at_once = sample.sent == sample.started && sample.started == sample.intended;
        is_sent_at_once && sample.first_byte == sample.done && self.lateness.is_none()
    }

    /// Counts a request except its latency.
    pub(crate) fn on_sample(&mut self, sample: &Sample) {
        if let Some(raw) = &mut self.raw {
            raw.record(sample.time());
        }
        if let Some(lateness) = &mut self.lateness {
            lateness.record(sample.lateness());
        }
        self.service.record(sample.service_time());
        self.first_byte.record(sample.first_byte_time());
        self.ttfb.record(sample.ttfb());
    }

    /// Counts latencies: of requests whose durations are all equal, and of those that were counted except for it.
    pub(crate) fn add_latencies(&mut self, alike: &Histogram, other: &Histogram) {
        self.latency.add(other);
        if alike.is_empty() {
            return;
        }
        let alike_too = [&mut self.service, &mut self.first_byte, &mut self.ttfb];
        for histogram in alike_too.into_iter().chain([&mut self.latency]) {
            histogram.add(alike);
        }
    }

    pub(crate) fn on_connected(&mut self, took: Duration) {
        self.connect.record(took);
    }

    pub(crate) fn on_secured(&mut self, took: Duration) {
        self.tls.record(took);
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        self.latency.add(&other.latency);
        add_optional(&mut self.raw, other.raw.as_ref());
        add_optional(&mut self.lateness, other.lateness.as_ref());
        self.service.add(&other.service);
        self.first_byte.add(&other.first_byte);
        self.ttfb.add(&other.ttfb);
        self.connect.add(&other.connect);
        self.tls.add(&other.tls);
    }
}

fn add_optional(sum: &mut Option<Histogram>, other: Option<&Histogram>) {
    match (sum, other) {
        (Some(sum), Some(other)) => sum.add(other),
        (sum @ None, Some(other)) => *sum = Some(other.clone()),
        (_, None) => {}
    }
}
