//! The output files: opened before a run, so that an hour of load does not end in "permission denied".

use crate::native::options::{Outputs, Refused};
use crate::native::outcome::Outcome;
use crate::native::{csv, hlog, json, svg};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Open files, each with the kind of its content.
#[derive(Debug)]
pub(super) struct Files(Vec<Wanted>);

#[derive(Debug)]
struct Wanted {
    option: &'static str,
    name: String,
    /// `None`: standard output.
    file: Option<File>,
    emit: fn(&Outcome<'_>) -> String,
}

impl Files {
    /// Opens all of them. Their content stays until there is a new one.
    pub(super) fn open(outputs: &Outputs) -> Result<Self, Refused> {
        type Emit = fn(&Outcome<'_>) -> String;
        let all: [(&'static str, &Option<String>, Emit); 4] = [
            ("--json", &outputs.json, |outcome| {
                format!("{:#}\n", json::emit(outcome))
            }),
            ("--hlog", &outputs.hlog, |outcome| {
                hlog::emit(outcome.results, outcome.options.warm_up)
            }),
            ("--csv", &outputs.csv, |outcome| {
                csv::emit(outcome.results, outcome.options.warm_up)
            }),
            ("--svg", &outputs.svg, svg::emit),
        ];
        let mut wanted = Vec::new();
        for (option, name, emit) in all {
            let Some(name) = name else { continue };
            wanted.push(Wanted {
                option,
                name: name.clone(),
                file: open(name).map_err(|error| Refused(format!("{option} {name}: {error}")))?,
                emit,
            });
        }
        Ok(Self(wanted))
    }

    /// Writes all of them; goes on after one that fails, and returns the messages of those. A closed standard output is
    /// no failure.
    pub(super) fn write(self, outcome: &Outcome<'_>, out: &mut dyn Write) -> Vec<String> {
        let mut sentences = Vec::new();
        for wanted in self.0 {
            let text = (wanted.emit)(outcome);
            let written = match wanted.file {
                Some(file) => replace(file, text.as_bytes()),
                None => out.write_all(text.as_bytes()).and_then(|()| out.flush()),
            };
            match written {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                    sentences.push(format!("{} {}: {error}", wanted.option, wanted.name));
                }
                _ => {}
            }
        }
        sentences
    }
}

fn open(name: &str) -> io::Result<Option<File>> {
    if name == "-" {
        return Ok(None);
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    options.open(name).map(Some)
}

/// A pipe or a terminal has no length to truncate.
fn replace(mut file: File, bytes: &[u8]) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
