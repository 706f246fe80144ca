//! The command itself: from arguments to an exit status.

use crate::native::files::Files;
use crate::native::options::{self, LoadCommand, Options, Refused};
use crate::native::outcome::{Outcome, STATUS_INVALID, STATUS_MISSED};
use crate::native::part::{self, PartIndex};
use crate::native::preparation::prepare;
use crate::native::summary::{self, Style};
use crate::native::terminal::Terminal;
use crate::native::{merge, runs};
use crate::platform::Platform;
use std::io::{self, Write};

/// Runs `millstream load` with the arguments after its name and returns the exit status: 0 done, [`STATUS_FAILED`], or
/// the one of [`Outcome::status`].
pub fn main(
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
    terminal: Terminal,
) -> u8 {
    if let Some((first, files)) = arguments.split_first()
        && first == b"merge"
    {
        return merge::main(files, out, err);
    }
    let options = match options::parse(arguments) {
        Ok(LoadCommand::Load(options)) => options,
        Ok(LoadCommand::Help(text)) => return status_of(out.write_all(text.as_bytes()), 0),
        Err(Refused(why)) => {
            let hint = "\"millstream load --help\" lists the options";
            let _ = writeln!(err, "millstream load: {why}\n{hint}");
            return STATUS_FAILED;
        }
    };
    let streams = Streams { out, err, terminal };
    match do_as_asked(&options, arguments, platform, streams) {
        Ok(status) => status,
        Err(Refused(why)) => {
            let _ = writeln!(err, "millstream load: {why}");
            STATUS_FAILED
        }
    }
}

/// The output streams.
struct Streams<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    terminal: Terminal,
}

/// One run, one part of a run, a search or a sweep.
fn do_as_asked(
    options: &Options,
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    streams: Streams<'_>,
) -> Result<u8, Refused> {
    if let Some(place) = options.part {
        return perform(options, place, platform, streams.out);
    }
    if let Some(sweep) = &options.sweep {
        runs::sweep(sweep, arguments, platform, streams.out)?;
        return Ok(0);
    }
    let mut prepared = prepare(options, platform)?;
    let files = Files::open(&options.outputs)?;
    if options.processes == 1 {
        platform.prepare().map_err(|error| Refused(error.0))?;
    }
    if let Some(objective) = &options.search {
        let searched = runs::search(options, &prepared, objective, platform, streams.err)?;
        let Some(results) = &searched.results else {
            let text = runs::describe(&searched, objective, (None, &options.thresholds));
            let written = say(&text, options, streams.out, streams.err);
            return Ok(status_of(written, STATUS_MISSED));
        };
        let thresholds = &options.thresholds;
        let mut options = options.clone();
        options.rate = searched.found.rate;
        prepared.plan.pace = runs::pace(&options);
        prepared.plan.stop.after = Some(results.measured);
        let outcome = Outcome::new(&options, &prepared, results);
        let context = (Some(outcome.verdict.word), thresholds);
        let text = runs::describe(&searched, objective, context);
        // An error on a closed output occurs again when the report is written.
        let _ = say(&text, &options, streams.out, streams.err);
        return Ok(report(&outcome, files, streams));
    }
    let results = if options.processes > 1 {
        runs::together(
            options,
            arguments,
            platform,
            (&mut *streams.err, streams.terminal),
        )?
    } else {
        prepared.plan.begin = runs::begin(options, platform)?;
        runs::alone(
            options,
            &prepared,
            platform,
            (&mut *streams.err, streams.terminal),
        )?
    };
    let outcome = Outcome::new(options, &prepared, &results);
    Ok(report(&outcome, files, streams))
}

/// Runs one part; the process that conducts it is context about any failure.
fn perform(
    options: &Options,
    place: PartIndex,
    platform: &impl Platform,
    out: &mut dyn Write,
) -> Result<u8, Refused> {
    let prepared = prepare(options, platform).map(|mut prepared| {
        place.share(&mut prepared.plan);
        let inputs = runs::inputs(options, &prepared);
        (prepared.plan, inputs)
    });
    let prepared = prepared.map_err(|Refused(why)| why);
    let done = part::perform(platform, place, prepared, out);
    done.map(|()| 0).map_err(|error| Refused(error.to_string()))
}

/// Writes summary and files; returns the exit status.
fn report(outcome: &Outcome<'_>, files: Files, streams: Streams<'_>) -> u8 {
    let Streams { out, err, terminal } = streams;
    let options = outcome.options;
    let mut status = outcome.status();
    if options.quiet {
        missed(outcome, err);
    } else {
        let goes_out = !options.outputs.take_standard_output();
        let style = Style {
            colour: terminal.colour && options.colour && goes_out,
        };
        let text = summary::emit(outcome, style);
        status = status_of(say(&text, options, out, err), status);
    }
    for sentence in files.write(outcome, out) {
        let _ = writeln!(err, "millstream load: {sentence}");
        status = STATUS_FAILED;
    }
    status
}

/// Writes text for people: not where a program reads from standard output.
fn say(text: &str, options: &Options, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<()> {
    if options.quiet {
        return Ok(());
    }
    if options.outputs.take_standard_output() {
        // A closed standard error is no failure.
        let _ = err.write_all(text.as_bytes());
        return Ok(());
    }
    out.write_all(text.as_bytes())
}

/// Reports the reason of the exit status when there is no summary.
fn missed(outcome: &Outcome<'_>, err: &mut dyn Write) {
    if outcome.status() == STATUS_INVALID {
        let why = &outcome.verdict.sentence;
        let _ = writeln!(err, "millstream load: the verdict is invalid: {why}");
    }
    for kept in outcome.requirements.iter().filter(|kept| !kept.held) {
        let requirement = &kept.requirement;
        let _ = writeln!(
            err,
            "millstream load: {} {} did not hold: {} {}",
            requirement.option(),
            requirement.limit(),
            requirement.name(),
            kept.measured
        );
    }
}

/// A closed standard output is no failure.
fn status_of(written: io::Result<()>, status: u8) -> u8 {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => STATUS_FAILED,
        _ => status,
    }
}

/// Nothing could be done, or not all that was requested.
pub const STATUS_FAILED: u8 = 1;
