//! System calls per request of a client, counted by strace from its start; a short run is taken off
//! a longer one, so that what happens once does not count.

use std::ffi::OsString;
use std::fs;

use super::block::Setting;
use super::case::Case;
use super::client::Client;
use super::run;
use super::server::{Server, Service};
use crate::bench::failure::{Failure, Result};
use crate::bench::strace::{Counts, SystemCalls, parse, per_request};

const SHORT_SECONDS: u64 = 1;
const LONG_SECONDS: u64 = 2;

/// Whose calls are counted: ours and wrk's.
pub(super) const COUNTED: [Client; 3] =
    [Client::MillstreamWrk, Client::MillstreamLoad, Client::Wrk];

pub(super) fn measure(setting: Setting<'_>, case: &Case, client: Client) -> Result<SystemCalls> {
    let short = count(setting, case, client, SHORT_SECONDS)?;
    let long = count(setting, case, client, LONG_SECONDS)?;
    per_request(&long.0, &short.0, long.1.saturating_sub(short.1))
}

/// The calls of a run and the requests it made.
fn count(setting: Setting<'_>, case: &Case, client: Client, seconds: u64) -> Result<(Counts, u64)> {
    let Setting {
        lab,
        programs,
        files,
        ..
    } = setting;
    let service = Service::of_bytes(case.body_bytes);
    let server = Server::start(lab, programs, setting.server, &service)?;
    run::forget(files);
    let report = lab.file("strace.txt");
    let mut line: Vec<OsString> = ["strace", "-f", "-c", "-o"].map(OsString::from).into();
    line.push(report.clone().into());
    line.extend(client.command_line(programs, files, case, seconds, &server.url()));
    let ended = run::run(lab, &line, seconds)?;
    server.stop()?;
    let text = fs::read_to_string(&report)
        .map_err(|_| Failure(format!("strace wrote nothing: {}", ended.text.trim())))?;
    let told = run::told(client, files, &ended)?;
    Ok((parse(&text), told.requests))
}
