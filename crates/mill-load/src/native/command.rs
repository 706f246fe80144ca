//! The command itself: from arguments to an exit status.

use crate::ground::{Ground, Hand};
use crate::native::files::Files;
use crate::native::live::Live;
use crate::native::options::{self, Asked, Options, Refused};
use crate::native::outcome::Outcome;
use crate::native::preparation::{Prepared, prepare};
use crate::native::recorder::Recorder;
use crate::native::results::Results;
use crate::native::summary::{self, Style};
use crate::native::terminal::Terminal;
use std::io::{self, Write};

/// Runs `millstream load` with the arguments after its name and returns the exit status: 0 done, [`STATUS_FAILED`],
/// or what [`Outcome::status`] says.
pub fn main(
    arguments: &[Vec<u8>],
    ground: &impl Ground,
    out: &mut dyn Write,
    err: &mut dyn Write,
    terminal: Terminal,
) -> u8 {
    let options = match options::parse(arguments) {
        Ok(Asked::Load(options)) => options,
        Ok(Asked::Help(text)) => return status_of(out.write_all(text.as_bytes()), 0),
        Err(Refused(why)) => {
            let hint = "\"millstream load --help\" lists the options";
            let _ = writeln!(err, "millstream load: {why}\n{hint}");
            return STATUS_FAILED;
        }
    };
    match load(&options, ground, (out, err), terminal) {
        Ok(status) => status,
        Err(Refused(why)) => {
            let _ = writeln!(err, "millstream load: {why}");
            STATUS_FAILED
        }
    }
}

/// Everything after the command line was understood.
fn load(
    options: &Options,
    ground: &impl Ground,
    (out, err): (&mut dyn Write, &mut dyn Write),
    terminal: Terminal,
) -> Result<u8, Refused> {
    let prepared = prepare(options, ground)?;
    let files = Files::open(&options.outputs)?;
    let results = run(options, &prepared, ground, err, terminal)?;
    let outcome = Outcome::new(options, &prepared, &results);
    let mut status = outcome.status();
    if !options.quiet {
        let style = Style {
            colour: terminal.colour && options.colour,
        };
        let text = summary::emit(&outcome, style);
        // What a program reads from standard output is not to be mixed with what people read.
        if options.outputs.take_standard_output() {
            let text = summary::emit(&outcome, Style { colour: false });
            let _ = err.write_all(text.as_bytes());
        } else {
            status = status_of(out.write_all(text.as_bytes()), status);
        }
    }
    for sentence in files.write(&outcome, out) {
        let _ = writeln!(err, "millstream load: {sentence}");
        status = STATUS_FAILED;
    }
    if options.quiet {
        missed(&outcome, err);
    }
    Ok(status)
}

/// One run in this process.
fn run(
    options: &Options,
    prepared: &Prepared,
    ground: &impl Ground,
    err: &mut dyn Write,
    terminal: Terminal,
) -> Result<Results, Refused> {
    let open_loop = options.rate.is_some();
    let threads = prepared.plan.threads;
    let hands = (0..threads)
        .map(|_| Hand {
            requests: prepared.sending.requests(),
            recorder: Recorder::new(open_loop),
        })
        .collect();
    let mut live = Live::new(threads, options, terminal, err);
    let began = ground.wall_clock();
    let ran = ground.run(&prepared.plan, hands, &mut live);
    let series = live.finish();
    let ran = ran.map_err(|error| Refused(error.0))?;
    Ok(Results::of(ran, series, began, open_loop))
}

/// Says without a summary why the exit status is what it is.
fn missed(outcome: &Outcome<'_>, err: &mut dyn Write) {
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

/// A reader of standard output that has seen enough is no failure.
fn status_of(written: io::Result<()>, status: u8) -> u8 {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => STATUS_FAILED,
        _ => status,
    }
}

/// Nothing could be done, or not all that was asked for.
pub const STATUS_FAILED: u8 = 1;
