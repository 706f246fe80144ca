//! What happened, line by line: the time since the world began, the connection, the direction, what arrived.
//!
//! ```text
//!      0.000 ms   1 > connects to 10.0.0.1:80
//!      5.000 ms   1 > 5 bytes "hello"
//!     10.000 ms   1 < 14 bytes "hello yourself"
//!     10.000 ms   1 < FIN
//! ```
//!
//! `>` is what reaches the accepting end, `<` what reaches the connecting end.

use crate::agenda::Item;
use crate::endpoint::EndpointId;
use mill_runtime::time::Duration;
use std::fmt::Display;

#[derive(Debug, Default)]
pub(crate) struct Ladder {
    lines: Vec<String>,
}

impl Ladder {
    /// Notes what reached `end`.
    pub(crate) fn note(&mut self, elapsed: Duration, end: EndpointId, what: impl Display) {
        let millis = elapsed.as_millis();
        let micros = elapsed.subsec_micros() % 1000;
        let (connection, arrow) = (
            end.connection() + 1,
            if end.is_accepting() { '>' } else { '<' },
        );
        self.lines.push(format!(
            "{millis:>6}.{micros:03} ms {connection:>3} {arrow} {what}"
        ));
    }

    pub(crate) fn note_item(&mut self, elapsed: Duration, end: EndpointId, item: &Item) {
        match item {
            Item::Fin => self.note(elapsed, end, "FIN"),
            Item::Reset => self.note(elapsed, end, "RST"),
            Item::Segment(bytes) => {
                let shown = bytes.get(..SHOWN_BYTES).unwrap_or(bytes);
                let more = if shown.len() < bytes.len() { "…" } else { "" };
                let text = format_args!("{} bytes \"{}{more}\"", bytes.len(), shown.escape_ascii());
                self.note(elapsed, end, text);
            }
        }
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// Bytes of a segment that a line shows: a request line or a status line of ordinary length.
const SHOWN_BYTES: usize = 48;
