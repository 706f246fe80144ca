//! Connections that failed and were never used. wrk does not retry them: its figures are of a smaller test.

use super::sample::Sample;
use super::warning;
use crate::findings::Warning;

pub(super) fn of(samples: &[Sample]) -> Vec<Warning> {
    samples
        .iter()
        .filter_map(|sample| {
            let failed = sample
                .figure("errors.connect")
                .filter(|count| *count > 0.0)?;
            let mut text = format!(
                "{}, {}: {failed} connects failed",
                sample.place, sample.label
            );
            if let Some(all) = sample.figure("connections_asked")
                && failed <= all
            {
                let left = all - failed;
                text.push_str(&format!(
                    ", so that at most {left} of {all} connections were used"
                ));
            }
            text.push('.');
            Some(warning("hidden-errors", text, ADVICE))
        })
        .collect()
}

const ADVICE: &str = "Raise the listen backlog (somaxconn, tcp_max_syn_backlog) or open connections more slowly; compare runs only if as many connections were open.";
