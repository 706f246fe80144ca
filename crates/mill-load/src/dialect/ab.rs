//! ApacheBench 2.3, as in httpd 2.4 of Debian 12: its command line, its requests, its report.
//!
//! One thread; connections of one request, read to their end, unless `-k` keeps them. Differences from ab:
//! - A failed request counts once, and its time is in no statistic; ab counts a reset connection up to three times.
//! - With `-k` the end of a response is known by its framing, not by the word Keep-Alive in its head.
//! - `-s` is the time limit of each response, as the usage says; ab waits so long for any event.
//! - `-e` and `-g` write their files with `-w` too, and do not read beyond the last sample.
//! - TLS 1.0 and 1.1 are refused, `-b` is not carried out, and both are reported. `-v` shows nothing of handshakes.
//! - A failed handshake counts as a failed connect; ab counts such a request as complete.
//!
//! The trunk of httpd has more: `-W` threads, `-R` to spread the opening of connections. Debian's ab does not know
//! them. Lines on stderr that begin with "millstream: " are ours: they report what ab's form hides.

/// The command line.
mod arguments;
/// CSV and gnuplot files.
mod files;
/// apr_getopt.
mod getopt;
/// The report in HTML.
mod html;
/// Messages of runs that end early.
mod message;
/// Progress lines of a run.
mod progress;
/// What is recorded of each request.
mod recorder;
/// The report as text.
mod report;
/// What is sent.
mod request;
/// From a command line to a report.
mod run;
/// ab's definitions of statistics.
mod statistics;
/// The system's texts of errors.
mod strerror;
/// TLS: its options, and its lines in the report.
mod tls;
/// The URL.
mod url;
/// Usage and banner.
mod usage;

use crate::platform::Platform;
use arguments::{Parsed, Refusal};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Runs ab with the arguments after the program's name; returns its exit status.
pub fn main(
    arguments: &[Vec<u8>],
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let read = |path: &[u8]| std::fs::read(Path::new(OsStr::from_bytes(path)));
    let parsed = arguments::parse(arguments, &read);
    // An error here means that the output is closed.
    execute(parsed, platform, out, err).unwrap_or(FATAL)
}

fn execute(
    parsed: Parsed,
    platform: &impl Platform,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    if let Some(mut line) = parsed.complaint {
        line.push(b'\n');
        err.write_all(&line)?;
    }
    match parsed.outcome {
        Ok(options) => {
            if let Err(error) = platform.prepare() {
                writeln!(err, "millstream: {error}")?;
                return Ok(FATAL);
            }
            run::run(&options, platform, out, err)
        }
        Err(Refusal::Version { html }) => {
            usage::emit_banner(html, out)?;
            Ok(0)
        }
        Err(Refusal::Usage(reason)) => {
            if let Some(reason) = reason {
                writeln!(err, "ab: {reason}")?;
            }
            err.write_all(usage::USAGE.as_bytes())?;
            Ok(WRONG_USAGE)
        }
        Err(Refusal::Fatal(text)) => {
            writeln!(err, "{text}")?;
            Ok(FATAL)
        }
    }
}

/// Exit statuses: ab's for errors without a number of their own, and EINVAL for an invalid command line.
const FATAL: u8 = 1;
const WRONG_USAGE: u8 = 22;

#[cfg(test)]
mod tests;
