//! What the last regular expression that matched has captured.

use super::Request;
use mill_config::config::{Captures, Pattern};
use std::ops::Range;

/// Captures and the text they were taken from.
#[derive(Clone, Debug, Default)]
pub struct CaptureSet {
    pub subject: Vec<u8>,
    pub ranges: Vec<Option<Range<usize>>>,
}

impl Request {
    /// Keeps the captures of a regular expression in `subject`: numbers for `$1`, names for user variables.
    pub fn keep_captures(&mut self, pattern: Option<&Pattern>, subject: &[u8], ranges: Captures) {
        self.captures.keep(subject, ranges);
        for &(capture, variable) in pattern.map(Pattern::named).unwrap_or_default() {
            let value = self.captures.capture(capture).to_vec();
            if let Some(place) = self.variables.get_mut(variable) {
                *place = Some(value);
            }
        }
    }
}

impl CaptureSet {
    pub(crate) fn keep(&mut self, subject: &[u8], ranges: Captures) {
        self.subject.clear();
        self.subject.extend_from_slice(subject);
        self.ranges = ranges;
    }

    /// Capture `number`; empty if it did not take part in the match.
    pub fn capture(&self, number: usize) -> &[u8] {
        let range = self.ranges.get(number).and_then(Option::clone);
        range
            .and_then(|range| self.subject.get(range))
            .unwrap_or_default()
    }
}
