//! The summary: the load, its duration, failures, and the verdict.

/// The table of latencies.
mod table;

use crate::failure::FailureKind;
use crate::native::outcome::Outcome;
use crate::native::units;
use crate::native::verdict::{Level, VerdictKind};
use crate::plan::{Arrivals, Life};
use crate::tls::Handshakes;
use std::fmt::Write;

/// Colours of a terminal, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub(super) colour: bool,
}

impl Style {
    /// Wraps text in an SGR sequence (ECMA-48 8.3.117).
    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            String::from(text)
        }
    }

    fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn doubtful(self, text: &str) -> String {
        self.paint("33", text)
    }
}

/// The whole summary.
pub(super) fn emit(outcome: &Outcome<'_>, style: Style) -> String {
    let mut text = String::new();
    text.push_str(&style.heading(&title(outcome)));
    text.push_str("\n\n");
    figures(&mut text, outcome);
    text.push('\n');
    table::emit(&mut text, outcome, style);
    accounts(&mut text, outcome, style);
    cost(&mut text, outcome);
    text.push('\n');
    verdict(&mut text, outcome, style);
    requirements(&mut text, outcome, style);
    text
}

/// `GET http://a/ — 100 connections, 2 threads, open loop at 20,000/s (Poisson), 10 s`.
pub(super) fn title(outcome: &Outcome<'_>) -> String {
    let options = outcome.options;
    let plan = &outcome.prepared.plan;
    let mut what = match (&options.message.replay, options.urls.as_slice()) {
        (Some(file), [(url, _), ..]) => format!("replay of {file} to {}", url.origin()),
        (None, [(url, _)]) => format!("{} {}{}", options.message.method, url.origin(), url.target),
        (_, urls) => format!("{} targets", urls.len()),
    };
    let plural = |count: u32, one: &str| {
        let ending = match (count, one.ends_with('s')) {
            (1, _) => "",
            (_, true) => "es",
            (_, false) => "s",
        };
        format!("{} {one}{ending}", units::count(u64::from(count)))
    };
    let _ = write!(
        what,
        "\n{}, {}, ",
        plural(plan.connections, "connection"),
        plural(plan.threads, "thread")
    );
    if let Some(streams) = plan.streams {
        let _ = write!(
            what,
            "HTTP/2, {} at once on each, ",
            plural(streams.get(), "request")
        );
    }
    if options.processes > 1 {
        let _ = write!(what, "{}, ", plural(options.processes, "process"));
    }
    match options.rate {
        Some(rate) => {
            let _ = write!(what, "open loop at {}", units::rate(rate));
            if options.arrivals == Arrivals::Poisson {
                what.push_str(" (Poisson)");
            }
        }
        None if options.think.is_zero() => what.push_str("closed loop"),
        None => {
            let _ = write!(
                what,
                "closed loop with {} to think",
                units::given(options.think)
            );
        }
    }
    match &plan.life {
        Life::Unlimited => {}
        Life::Requests(1) => what.push_str(", one request per connection"),
        Life::Requests(count) => {
            let _ = write!(what, ", {count} requests per connection");
        }
        Life::Distribution(_) => what.push_str(", mixed numbers of requests per connection"),
    }
    let _ = write!(what, ", {}", units::duration(outcome.results.measured));
    if !options.warm_up.is_zero() {
        let _ = write!(what, " after {} of warm-up", units::given(options.warm_up));
    }
    if outcome.results.interrupted {
        what.push_str(", interrupted");
    }
    what
}

fn figures(text: &mut String, outcome: &Outcome<'_>) {
    let results = outcome.results;
    let tally = &results.tally;
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<12}{value}");
    };
    let rate = units::rate(results.rate());
    match outcome.options.rate {
        Some(offered) => line(
            "rate",
            format!(
                "{rate} of {} offered ({})",
                units::rate(offered),
                units::percent(results.rate() / offered)
            ),
        ),
        None => line("rate", rate),
    }
    line(
        "answered",
        format!("{} requests", units::count(tally.answered)),
    );
    line(
        "received",
        format!(
            "{}, {} ({} of content)",
            units::bytes(tally.bytes_received),
            units::byte_rate(results.per_second(tally.bytes_received)),
            units::bytes(tally.content_bytes)
        ),
    );
    let mut connections = format!(
        "{} opened, {}, at most {} at a time",
        units::count(tally.connected),
        units::rate(results.per_second(tally.connected)),
        units::count(tally.open_max)
    );
    if tally.ports_taken > 0 {
        let taken = units::count(tally.ports_taken);
        let _ = write!(connections, ", {taken} source ports passed over as taken");
    }
    line("connections", connections);
    if tally.handshakes > 0 {
        let kind = |count: u64, name: &str| {
            let per_second = units::rate(results.per_second(count));
            format!("{} {name} ({per_second})", units::count(count))
        };
        let full = kind(tally.handshakes_full(), "full");
        line(
            "handshakes",
            format!("{full}, {}", kind(tally.handshakes_resumed, "resumed")),
        );
        if outcome.options.handshakes == Handshakes::Early {
            let accepted = kind(tally.early_accepted, "accepted");
            let rejected = kind(tally.early_rejected, "rejected");
            let again = units::count(tally.early_too_early);
            let early = format!("{accepted}, {rejected}, {again} answered 425");
            line("early data", early);
        }
    }
}

/// Every request, by its result.
fn accounts(text: &mut String, outcome: &Outcome<'_>, style: Style) {
    let tally = &outcome.results.tally;
    let _ = writeln!(
        text,
        "  {} started = {} answered + {} failed + {} unfinished at the end",
        units::count(tally.started),
        units::count(tally.answered),
        units::count(tally.failed()),
        units::count(tally.unfinished()),
    );
    if tally.never_started > 0 {
        let never = format!(
            "  {} more were due and not started when the run ended",
            units::count(tally.never_started)
        );
        let _ = writeln!(text, "{}", style.bad(&never));
    }
    for (kind, example) in &outcome.results.failures {
        let count = units::count(tally.failures_of(*kind));
        let line = format!("  {count} failed ({}): {example}", words(*kind));
        let _ = writeln!(text, "{}", style.bad(&line));
    }
    statuses(text, outcome, style);
    if let Some(why) = &outcome.results.aborted {
        let _ = writeln!(text, "{}", style.bad(&format!("  ended early: {why}")));
    }
}

fn statuses(text: &mut String, outcome: &Outcome<'_>, style: Style) {
    let tally = &outcome.results.tally;
    if tally.statuses_bad > 0 {
        let classes: Vec<String> = (1..)
            .zip(tally.statuses)
            .filter(|(_, count)| *count > 0)
            .map(|(class, count)| format!("{} × {class}xx", units::count(count)))
            .collect();
        let line = format!("  statuses: {}", classes.join(", "));
        let _ = writeln!(text, "{}", style.doubtful(&line));
    }
    let answers = &outcome.results.answers;
    let kinds = answers.kinds().count();
    if outcome.prepared.sending.is_one() && kinds > 1 {
        let shown: Vec<String> = answers
            .kinds()
            .take(KINDS_SHOWN)
            .map(|kind| {
                let (count, bytes) = (units::count(kind.count), units::bytes(kind.content_bytes));
                format!("{count} × {} with {bytes}", kind.status)
            })
            .collect();
        let more = if kinds > KINDS_SHOWN { ", …" } else { "" };
        let line = format!("  answers differ: {}{more}", shown.join(", "));
        let _ = writeln!(text, "{}", style.doubtful(&line));
    }
    if tally.surplus > 0 {
        let surplus = units::count(tally.surplus);
        let line = format!("  {surplus} answers were longer than announced");
        let _ = writeln!(text, "{}", style.bad(&line));
    }
}

/// CPU time per answer, of both sides as far as it is known.
fn cost(text: &mut String, outcome: &Outcome<'_>) {
    let results = outcome.results;
    let machine = &results.machine;
    let own: Vec<String> = machine
        .threads
        .iter()
        .filter(|thread| !thread.wall.is_zero())
        .map(|thread| {
            let busy = (thread.user + thread.system).as_secs_f64() / thread.wall.as_secs_f64();
            format!("{:.0}", busy * 100.0)
        })
        .collect();
    let per_request = |user: core::time::Duration, system: core::time::Duration| {
        let each = |time: core::time::Duration| {
            let nanos = time.as_nanos() / u128::from(results.tally.answered.max(1));
            units::duration(core::time::Duration::from_nanos(
                u64::try_from(nanos).unwrap_or(u64::MAX),
            ))
        };
        format!(
            "{} per request ({} user, {} system)",
            each(user + system),
            each(user),
            each(system)
        )
    };
    if results.tally.answered == 0 {
        return;
    }
    if !own.is_empty() {
        let user = machine.threads.iter().map(|thread| thread.user).sum();
        let system = machine.threads.iter().map(|thread| thread.system).sum();
        let busy = own.join(" + ");
        let line = format!("client CPU: {}; busy {busy} %", per_request(user, system));
        wrap(text, "  ", &line);
    }
    if let Some(server) = &machine.server {
        let line = format!(
            "server CPU: {}; {} (process {}), its busiest thread {:.0} %",
            per_request(server.user, server.system),
            server.command,
            server.process,
            server.busiest_thread * 100.0
        );
        wrap(text, "  ", &line);
    }
}

fn verdict(text: &mut String, outcome: &Outcome<'_>, style: Style) {
    let verdict = &outcome.verdict;
    let name = verdict.word.name();
    let word = match verdict.word {
        VerdictKind::ServerBound | VerdictKind::Paced => style.good(name),
        VerdictKind::Unstable | VerdictKind::LinkBound | VerdictKind::ClientBound => {
            style.doubtful(name)
        }
        VerdictKind::Invalid => style.bad(name),
    };
    let _ = writeln!(text, "{}: {word}", style.heading("verdict"));
    wrap(text, "  ", &verdict.sentence);
    for check in &verdict.checks {
        if check.level != Level::Ok && check.advice != verdict.sentence {
            wrap(text, "  - ", &check.advice);
        }
    }
}

fn requirements(text: &mut String, outcome: &Outcome<'_>, style: Style) {
    if !outcome.requirements.is_empty() {
        text.push('\n');
    }
    for kept in &outcome.requirements {
        let requirement = &kept.requirement;
        let (option, limit) = (requirement.option(), requirement.limit());
        let line = format!("{option} {limit}: {} {}", requirement.name(), kept.measured);
        let line = if kept.held {
            style.good(&format!("  held    {line}"))
        } else {
            style.bad(&format!("  missed  {line}"))
        };
        let _ = writeln!(text, "{line}");
    }
}

/// Writes words in lines of at most [`COLUMNS`]; further lines are indented to the first one's text.
pub(super) fn wrap(text: &mut String, first: &str, words: &str) {
    let mut line = String::from(first);
    let mut is_fresh = true;
    for word in words.split_whitespace() {
        let is_full = line.chars().count() + 1 + word.chars().count() > COLUMNS;
        if is_full && !is_fresh {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(first.chars().count());
            is_fresh = true;
        }
        if !is_fresh {
            line.push(' ');
        }
        line.push_str(word);
        is_fresh = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// The name of a kind of failure in a summary.
fn words(kind: FailureKind) -> String {
    kind.name().replace('_', " ")
}

/// The default width of a terminal.
const COLUMNS: usize = 80;

/// A longer list of kinds of answers would not help.
const KINDS_SHOWN: usize = 4;

#[cfg(test)]
mod tests;
