//! What a thread records for h2load's report.

use crate::failure::Failure;
use crate::record::Record;
use crate::sample::Sample;
use crate::tally::Tally;
use core::ops::Range;
use mill_metrics::Histogram;
use mill_runtime::time::{Duration, Instant};

/// Requests that a thread has finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progressed(pub(super) u64);

/// The times of requests, and what each client has done.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    pub(super) requests: Histogram,
    /// Of answers of HTTP/1.
    pub(super) head_bytes: u64,
    pub(super) clients: Vec<Client>,
    /// The number of the first client.
    first: u32,
}

/// One connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Client {
    pub(super) answered: u64,
    began: Option<Instant>,
    ended: Instant,
    pub(super) connect: Option<Duration>,
    pub(super) first_byte: Option<Duration>,
}

impl Client {
    /// Requests a second in its life.
    pub(super) fn rate(&self) -> Option<f64> {
        let lived = self.ended.since(self.began?).as_secs_f64();
        (lived > 0.0).then(|| self.answered as f64 / lived)
    }
}

impl Recorder {
    /// For these connections.
    pub(super) fn new(connections: Range<u32>) -> Self {
        Self {
            requests: Histogram::new(),
            head_bytes: 0,
            clients: vec![Client::default(); connections.len()],
            first: connections.start,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.requests.add(&other.requests);
        self.head_bytes += other.head_bytes;
        self.clients.extend_from_slice(&other.clients);
    }
}

impl Record for Recorder {
    type Interval = Progressed;

    fn on_begin(&mut self, now: Instant) {
        self.requests.clear();
        self.head_bytes = 0;
        for client in &mut self.clients {
            // Connections of the warm-up go on.
            let began = client.began.map(|_| now);
            *client = Client {
                began,
                ..Client::default()
            };
        }
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.requests.record(sample.done.since(sample.sent));
        self.head_bytes += sample.head_bytes;
        let place = (sample.connection - self.first) as usize;
        let Some(client) = self.clients.get_mut(place) else {
            return;
        };
        client.answered += 1;
        client.ended = client.ended.max(sample.done);
        client.began.get_or_insert(sample.started);
        if let (Some(connected), None) = (sample.connected, client.connect) {
            client.connect = Some(connected.since(sample.started));
            client.first_byte = Some(sample.first_byte.since(sample.started));
        }
    }

    fn on_failure(&mut self, _: Failure, _: Instant) {}

    fn cut(&mut self, _: Instant, tally: &Tally) -> Progressed {
        Progressed(tally.answered + tally.failed())
    }
}
