//! Runs that were ended early, and outputs that are not of the command above them.

use super::sample::Sample;
use super::warning;
use crate::findings::Warning;

pub(super) fn of(samples: &[Sample]) -> Vec<Warning> {
    samples
        .iter()
        .filter_map(|sample| {
            let found: Vec<String> = [early(sample), connections(sample)]
                .into_iter()
                .flatten()
                .collect();
            if found.is_empty() {
                return None;
            }
            let mut place = sample.place.clone();
            if !sample.label.is_empty() {
                place = format!("{place}, {}", sample.label);
            }
            let text = format!("{place}: {}.", found.join("; "));
            Some(warning("interrupted", text, ADVICE))
        })
        .collect()
}

/// Less time or fewer requests than configured. If both were configured, whichever comes first ends the run.
fn early(sample: &Sample) -> Option<String> {
    let asked = sample.asked.as_ref();
    let seconds_asked = asked
        .and_then(|asked| asked.seconds)
        .or_else(|| sample.figure("seconds.asked"));
    let time = sample.figure("seconds").zip(seconds_asked);
    let requests = sample
        .figure("requests")
        .zip(asked.and_then(|asked| asked.requests));
    let too_short = time.map(|(seconds, asked)| seconds < asked * SHORTEST);
    let too_few = requests.map(|(done, asked)| done < asked);
    match (too_short, too_few) {
        (Some(true), None | Some(true)) => time.map(|(seconds, asked)| {
            format!("the run ended after {seconds} s of the {asked} s asked for")
        }),
        (None, Some(true)) => requests
            .map(|(done, asked)| format!("{done} of the {asked} requests asked for were made")),
        _ => sample
            .interrupted
            .then(|| String::from("the run was ended early")),
    }
}

/// The output has another number of connections than the command.
fn connections(sample: &Sample) -> Option<String> {
    let asked = sample.asked.as_ref()?.connections?;
    let printed = sample.figure("connections_asked")?;
    let differ = (asked - printed).abs() > 0.5;
    differ.then(|| format!("the output is of {printed} connections, the command asks for {asked}"))
}

const ADVICE: &str = "Run it again to its end, and quote the command that was run: figures of a start are not figures of a server.";

/// Share of the duration: tools always use all of it, so a shorter run was ended by the user.
const SHORTEST: f64 = 0.98;
