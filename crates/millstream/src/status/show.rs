//! Answers as text.

use super::arguments::View;
use mill_server_host::status::client::{self, Found};
use mill_status::Status;
use mill_status::text;
use mill_status::text::columns::{Columns, Side};
use mill_status::text::tables::{self, Help};
use std::io::{self, IsTerminal};

/// The overview, or the requested tables in its place.
pub(super) fn page(status: &Status, wanted: &[View]) -> String {
    if wanted.is_empty() {
        return text::overview(status);
    }
    let notes = status.notes.iter().map(|note| format!("{note}\n"));
    let text = notes.collect::<String>() + &views(status, wanted);
    text.trim_start().to_owned()
}

/// Tables, an empty line before each.
pub(super) fn views(status: &Status, wanted: &[View]) -> String {
    let help = if io::stdout().is_terminal() {
        Help::Fitting
    } else {
        Help::Whole
    };
    let each = wanted.iter().map(|view| {
        let table = match view {
            View::Connections => tables::connections(status),
            View::Listeners => tables::listeners(status),
            View::Neighbors => tables::neighbors(status),
            View::Routes => tables::routes(status),
            View::Rings => tables::rings(status),
            View::Timers => tables::timers(status),
            View::Drops => tables::drops(status, help),
            View::Counters => tables::counters(status, false, help),
            View::Options => tables::options(status),
            View::Upstreams => text::upstreams(status),
            View::Zones => text::zones(status),
            View::Cache => text::caches(status),
            View::Blocks => text::blocks(status),
            View::Certificates => text::certificates(status),
        };
        format!("\n{table}")
    });
    each.collect()
}

/// Several servers, one a line.
pub(super) fn list(servers: &[Found]) -> String {
    let right = Side::Right;
    let mut table = Columns::new(&[
        ("PROCESS", right),
        ("PROGRAM", Side::Left),
        ("UP", Side::Left),
        ("WORKERS", right),
        ("CONNS", right),
        ("REQUESTS", right),
        ("STACK", Side::Left),
        ("CONFIGURATION", Side::Left),
    ]);
    for found in servers {
        match client::ask_shortly(found) {
            Ok(status) => table.push(text::line(&status)),
            Err(error) => table.push(vec![found.process.to_string(), error.to_string()]),
        }
    }
    table.render()
}
