//! `millstream lab`: one match over the request. What needs no machine is in mill-lab's `desk`; the rest is here.

mod run;
mod tune;

use crate::environment;
use crate::interrupt::Interrupt;
use crate::journal;
use crate::options::{self, Command, Options};
use crate::probe;
use mill_lab::desk::{self, Desk, Shown, answer};
use std::ffi::OsString;
use std::io::Write;

/// What is known of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Standard error is a terminal that moves its cursor, and this wide.
    pub columns: Option<usize>,
    /// Standard output shows colours.
    pub colour: bool,
}

/// Runs the command in the arguments after `millstream lab`; returns the exit status.
pub fn main(
    words: &[OsString],
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let options = match options::parse(words) {
        Ok(options) => options,
        Err(stopped) => {
            let text = if terminal.colour {
                stopped.coloured
            } else {
                stopped.text
            };
            let stream: &mut dyn Write = if stopped.status == 0 { out } else { err };
            let _ = stream.write_all(text.as_bytes());
            return stopped.status;
        }
    };
    match carry_out(&options, words, terminal, out, err) {
        Ok(status) => status,
        Err(problem) => {
            let _ = writeln!(err, "millstream lab: {problem}");
            FAILED
        }
    }
}

fn carry_out(
    options: &Options,
    words: &[OsString],
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, String> {
    let desk = Desk {
        store: &options.store,
    };
    Ok(match &options.command {
        Command::List(list) => answer(desk::list(desk, list.runs, out, err), err),
        Command::Show(show) => {
            let choice = &show.choice;
            let form = if show.toml {
                Shown::Toml
            } else {
                Shown::Plan {
                    cores: environment::cores(),
                }
            };
            answer(
                desk::show(&choice.recipe, &choice.size, &choice.sets, form, out),
                err,
            )
        }
        Command::Check(files) => answer(desk::check(&files.files, out, err), err),
        Command::Report(report) => {
            let forms = desk::Forms {
                html: report.html.as_deref(),
                markdown: report.markdown.as_deref(),
                csv: report.csv.as_deref(),
            };
            answer(desk::report(desk, &report.run, forms, out, err), err)
        }
        Command::Compare(compare) => answer(
            desk::compare(desk, &compare.from, &compare.to, out, err),
            err,
        ),
        Command::Export(export) => {
            let (json, output) = (export.form.json, export.output.as_deref());
            answer(desk::export(desk, &export.run, json, output, out, err), err)
        }
        Command::Lint(files) => answer(desk::lint(&files.files, out, err), err),
        Command::Runs(runs) => answer(desk::runs(desk, runs.recipe.as_deref(), out, err), err),
        Command::Env => {
            let text = environment::text(&environment::gather());
            out.write_all(text.as_bytes())
                .map_err(|error| error.to_string())?;
            0
        }
        Command::Probe(words) => probe::path::tool(&words.words, out),
        Command::Restore => restore(out)?,
        Command::Tune(tune) => tune::run(&tune.choice, tune.yes, out)?,
        Command::Run(run) => {
            let interrupt = listen()?;
            let line = command_line(words);
            run::begin(
                &options.store,
                &run.choice,
                &run.manner,
                line,
                (terminal, &interrupt),
                out,
                err,
            )?
        }
        Command::Resume(resume) => {
            let interrupt = listen()?;
            run::resume(
                &options.store,
                &resume.run,
                &resume.manner,
                (terminal, &interrupt),
                out,
                err,
            )?
        }
    })
}

fn listen() -> Result<Interrupt, String> {
    Interrupt::listen().map_err(|error| format!("signals cannot be received: {error}"))
}

fn restore(mut out: &mut dyn Write) -> Result<u8, String> {
    let folder = journal::state_folder();
    let _hold = journal::hold(&folder, "restore").map_err(|refused| refused.to_string())?;
    let restored = journal::restore_all(&folder, &mut out)
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(u8::from(!restored.left.is_empty()) * FAILED)
}

fn command_line(words: &[OsString]) -> Vec<String> {
    let own = ["millstream", "lab"].map(String::from);
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    own.into_iter().chain(words).collect()
}

const FAILED: u8 = 1;
