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

/// Less time or fewer requests than were asked for.
fn early(sample: &Sample) -> Option<String> {
    let asked = sample.asked.as_ref();
    let seconds_asked = asked
        .and_then(|asked| asked.seconds)
        .or_else(|| sample.figure("seconds.asked"));
    if let (Some(seconds), Some(asked)) = (sample.figure("seconds"), seconds_asked)
        && asked_for_time(sample)
        && seconds < asked * SHORTEST
    {
        return Some(format!(
            "the run ended after {seconds} s of the {asked} s asked for"
        ));
    }
    let requests_asked = asked.and_then(|asked| asked.requests);
    if let (Some(done), Some(asked)) = (sample.figure("requests"), requests_asked)
        && done < asked
    {
        return Some(format!(
            "{done} of the {asked} requests asked for were made"
        ));
    }
    sample
        .interrupted
        .then(|| String::from("the run was ended early"))
}

/// Not if a number of requests ends the run: then it takes as long as it takes.
fn asked_for_time(sample: &Sample) -> bool {
    let requests = sample.asked.as_ref().and_then(|asked| asked.requests);
    requests.is_none()
}

/// The output has another number of connections than the command.
fn connections(sample: &Sample) -> Option<String> {
    let asked = sample.asked.as_ref()?.connections?;
    let printed = sample.figure("connections_asked")?;
    let differ = (asked - printed).abs() > 0.5;
    differ.then(|| format!("the output is of {printed} connections, the command asks for {asked}"))
}

const ADVICE: &str = "Run it again to its end, and quote the command that was run: figures of a start are not figures of a server.";

/// Share of the duration: tools always run it out, so that less means that somebody ended it.
const SHORTEST: f64 = 0.98;
