//! Heap allocations per request: valgrind counts those of a whole run; the difference between a
//! short and a long run is what the requests cost, exactly.
//!
//! What a server takes from mappings of its own, or from an allocator linked into it, is not seen.

use super::case::{Case, Connections};
use super::client::Client;
use super::server::{Programs, Server, Subject};
use crate::bench::failure::{Failure, Result};
use crate::bench::lab::Lab;

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
    let wrapper = VALGRIND.map(str::to_owned);
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
    let processes = server.pids.len();
    let output = server.stop()?;
    let sum = sum(&output, processes);
    sum.ok_or_else(|| Failure("valgrind did not tell the heap usage of all processes".to_owned()))
}

/// It writes to the standard error of the server as it was at the start. With files of its own it
/// would name those after a fork, by an argument that a server may have overwritten with its title.
const VALGRIND: [&str; 5] = [
    "valgrind",
    "--tool=memcheck",
    "--leak-check=no",
    "--undef-value-errors=no",
    "--trace-children=yes",
];

/// The allocations of all processes of a run, if all have told. Each writes at its orderly end:
/// "total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated".
fn sum(output: &str, processes: usize) -> Option<u64> {
    let lines = output.split("total heap usage: ").skip(1);
    let counts = lines.map(|line| {
        let (count, _) = line.split_once(" allocs")?;
        count.replace(',', "").parse::<u64>().ok()
    });
    let counts = counts.collect::<Option<Vec<_>>>()?;
    (counts.len() >= processes).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::sum;

    /// The allocations that two processes tell.
    fn check(output: &str, expected: Option<u64>) {
        assert_eq!(sum(output, 2), expected, "{output:?}");
    }

    #[test]
    fn the_allocations_of_all_processes_are_added() {
        check(
            "==7==   total heap usage: 1,234,567 allocs, 3 frees, 9 bytes allocated\n==7==\n\
             ==8==   total heap usage: 10 allocs, 3 frees, 9 bytes allocated\n",
            Some(1_234_577),
        );
    }

    #[test]
    fn a_process_that_tells_nothing_is_not_taken_for_one_without_allocations() {
        check("==7== killed\n==8== killed\n", None);
        check(
            "==7==   total heap usage: 12 allocs, 3 frees\n==8== killed\n",
            None,
        );
        check(
            "==7==   total heap usage: 12 allocs\n==8==   total heap usage: many allocs\n",
            None,
        );
    }
}
