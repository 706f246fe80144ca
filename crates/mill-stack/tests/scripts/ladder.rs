//! The packets and calls of a run, to show why a script failed.

/// Lines of a ladder that a message shows; what went wrong is near its end.
const SHOWN: usize = 40;

/// The packets and calls of a run, in their order.
#[derive(Debug, Default)]
pub(crate) struct Ladder(Vec<String>);

impl Ladder {
    pub(crate) fn inbound(&mut self, nanos: u64, what: &str) {
        self.0
            .push(format!("{}  peer --> stack  {what}", seconds(nanos)));
    }

    pub(crate) fn outbound(&mut self, nanos: u64, what: &str) {
        self.0
            .push(format!("{}  peer <-- stack  {what}", seconds(nanos)));
    }

    pub(crate) fn call(&mut self, nanos: u64, what: &str) {
        self.0
            .push(format!("{}         program  {what}", seconds(nanos)));
    }

    pub(crate) fn tail(&self) -> String {
        let start = self.0.len().saturating_sub(SHOWN);
        self.0[start..].join("\n    ")
    }
}

pub(crate) fn seconds(nanos: u64) -> String {
    let (whole, micros) = (nanos / 1_000_000_000, nanos / 1000 % 1_000_000);
    format!("{whole:>4}.{micros:06}")
}
