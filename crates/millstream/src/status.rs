//! `millstream status`: the status of a running server.

/// The command line.
mod arguments;

/// `--pcap`.
mod capture;

/// `--link`.
mod link;

/// Programs on our stack.
mod programs;

/// Answers as text.
mod show;

/// Repeated queries.
mod watch;

use crate::help;
use arguments::Arguments;
use mill_server_host::status::client::{self, StatusError};
use programs::Programs;
use std::process::ExitCode;

/// `millstream status …`.
pub(crate) fn run(words: &[Vec<u8>]) -> ExitCode {
    let words = words
        .iter()
        .map(|word| String::from_utf8_lossy(word).into_owned());
    let words: Vec<String> = words.collect();
    let arguments = Arguments::parse(&words).and_then(|parsed| parsed.check().map(|()| parsed));
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(what) => {
            help::complain(&format!("millstream status: {what}\n"));
            return ExitCode::from(USAGE_CODE);
        }
    };
    if arguments.help {
        help::print(arguments::HELP);
        return ExitCode::SUCCESS;
    }
    if arguments.link {
        return link::run(arguments.server.as_deref());
    }
    match look(&arguments) {
        Ok(code) => code,
        Err(error) => {
            help::complain(&format!("millstream status: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn look(arguments: &Arguments) -> Result<ExitCode, StatusError> {
    // Only the overview has them.
    let programs = match arguments.is_overview() {
        true => Programs::all(),
        false => Programs::default(),
    };
    let found = match &arguments.server {
        Some(word) => match client::find(word) {
            Ok(found) => found,
            Err(error) => {
                let called = programs.called(word);
                if called.is_empty() {
                    return Err(error);
                }
                help::print(&called.table());
                return Ok(ExitCode::SUCCESS);
            }
        },
        None => match client::servers().as_slice() {
            [] if !programs.is_empty() => {
                help::print(&programs.table());
                return Ok(ExitCode::SUCCESS);
            }
            [] => {
                help::complain("millstream status: no server runs here that you may ask\n");
                return Ok(ExitCode::FAILURE);
            }
            [one] => one.clone(),
            several => {
                help::print(&show::list(several));
                beside(&programs);
                return Ok(ExitCode::SUCCESS);
            }
        },
    };
    if let Some(interval) = arguments.watch {
        watch::run(&found, arguments, interval)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(capture) = &arguments.capture {
        return capture::run(&found, arguments, capture);
    }
    let status = client::ask(&found, &arguments.request(), None)?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&status).unwrap_or_default();
        help::print(&format!("{text}\n"));
    } else {
        help::print(&show::page(&status, &arguments.views));
        if arguments.server.is_none() {
            beside(&programs);
        }
    }
    let is_well = status.workers.iter().all(|worker| !worker.state.is_bad());
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(BAD_CODE)
    })
}

/// Programs, beside what was shown of servers.
fn beside(programs: &Programs) {
    if !programs.is_empty() {
        help::print(&format!("\n{}", programs.table()));
    }
}

/// For a wrong command line.
const USAGE_CODE: u8 = 2;

/// If a worker hangs or is stopped, whether the server answered or only its memory was read.
const BAD_CODE: u8 = 3;
