//! Heap allocations per request: valgrind counts those of a whole run; the difference between a
//! short and a long run is what the requests cost, exactly.
//!
//! What a server takes from mappings of its own, or from an allocator linked into it, is not seen.

use std::fs;
use std::path::Path;

use super::case::{Case, Connections};
use super::client::Client;
use super::failure::{Failure, Result};
use super::lab::Lab;
use super::server::{Programs, Server, Subject};

pub(super) fn measure(
    lab: &Lab,
    programs: &Programs,
    case: &Case,
    subject: Subject,
) -> Result<f64> {
    let few = count(lab, programs, case, subject, REQUESTS_FEW)?;
    let many = count(lab, programs, case, subject, REQUESTS_MANY)?;
    let more = many as f64 - few as f64;
    Ok(more / f64::from(REQUESTS_MANY - REQUESTS_FEW))
}

/// Multiples of 14, so that no connection is left half used where it lives for 14 requests. The
/// first is past the growth of tables and caches.
const REQUESTS_FEW: u32 = 140;
const REQUESTS_MANY: u32 = 1120;
const _: () = assert!(REQUESTS_FEW.is_multiple_of(14) && REQUESTS_MANY.is_multiple_of(14));

/// Large answers take their time under valgrind, and each costs the same.
const CONNECTIONS: u32 = 4;

fn count(
    lab: &Lab,
    programs: &Programs,
    case: &Case,
    subject: Subject,
    requests: u32,
) -> Result<u64> {
    let logs = lab.empty_folder("valgrind")?;
    let wrapper = [
        "valgrind",
        "--tool=memcheck",
        "--leak-check=no",
        "--undef-value-errors=no",
        "--trace-children=yes",
        &format!("--log-file={}/%p.txt", logs.display()),
    ];
    let wrapper = wrapper.map(str::to_owned);
    let server = Server::start(lab, programs, subject, case, &wrapper)?;
    // Connections that stay cost the same in both runs; the others are part of what is measured.
    let connections = match case.connections {
        Connections::KeepAlive => CONNECTIONS,
        Connections::PerRequest | Connections::OfRequests(_) => 1,
    };
    for _ in 0..connections {
        Client::ask_many(server.port, case, requests / connections).map_err(Failure::during(
            format!("{} under valgrind", subject.name()),
        ))?;
    }
    server.stop()?;
    sum(&logs)
}

/// The allocations of all processes of a run.
fn sum(logs: &Path) -> Result<u64> {
    let failed = || Failure::during(logs.display());
    let mut total = None;
    for entry in fs::read_dir(logs).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let text = fs::read_to_string(&path).map_err(failed())?;
        if let Some(count) = parse(&text) {
            total = Some(total.unwrap_or(0) + count);
        }
    }
    total.ok_or_else(|| Failure("valgrind told no heap usage".to_owned()))
}

/// "total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated", which a process writes at
/// its orderly end.
fn parse(text: &str) -> Option<u64> {
    let (_, after) = text.rsplit_once("total heap usage: ")?;
    let (count, _) = after.split_once(" allocs")?;
    count.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_number_of_allocations_is_read_with_its_commas() {
        let text =
            "==7==   total heap usage: 1,234,567 allocs, 3 frees, 9 bytes allocated\n==7==\n";
        assert_eq!(parse(text), Some(1_234_567));
        assert_eq!(parse("==7== killed"), None);
    }
}
