//! Onload's `onload_stackdump`, for the processes that are on our stack.

use crate::accelerated::Connection;
use crate::accelerated::search::Found;
use crate::onload;
use core::fmt::Write;
use core::net::SocketAddr;

/// What a command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    Help,
    Dump(Dump),
}

/// Which tables, of which stacks.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dump {
    tables: Vec<Table>,
    /// Numbers of processes; empty for all.
    stacks: Vec<u32>,
    without_processes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    Stacks,
    Clusters,
    Netstat,
    Stats,
    Opts,
    Lots,
}

/// Onload's words, those of them that mean the same here, and the tables.
const WORDS: &[(&str, Table)] = &[
    ("stacks", Table::Stacks),
    ("clusters", Table::Clusters),
    ("netstat", Table::Netstat),
    ("stats", Table::Stats),
    ("opts", Table::Opts),
    ("lots", Table::Lots),
    ("socks", Table::Netstat),
    ("more_stats", Table::Stats),
    ("tcp_stats", Table::Stats),
    ("stack_opts", Table::Opts),
    ("all", Table::Lots),
];

/// Reads the words of a command line; the error is a sentence.
pub fn parse(words: &[String]) -> Result<Asked, String> {
    let mut dump = Dump::default();
    for word in words {
        if let Some((_, table)) = WORDS.iter().find(|(name, _)| name == word) {
            dump.tables.push(*table);
        } else if let Ok(process) = word.parse() {
            dump.stacks.push(process);
        } else {
            match word.as_str() {
                "--nopids" => dump.without_processes = true,
                "help" | "-h" | "--help" | "doc" => return Ok(Asked::Help),
                _ => {
                    let words: Vec<_> = WORDS.iter().take(6).map(|(name, _)| *name).collect();
                    let words = words.join(", ");
                    return Err(format!(
                        "\"{word}\" is not known; there are {words}, help, and --nopids"
                    ));
                }
            }
        }
    }
    if dump.tables.is_empty() {
        dump.tables.push(match dump.stacks.as_slice() {
            [] => Table::Stacks,
            _ => Table::Lots,
        });
    }
    Ok(Asked::Dump(dump))
}

impl Dump {
    /// The text about these processes, which are in order.
    pub fn text(&self, found: &[Found]) -> String {
        let is_wanted =
            |found: &&Found| self.stacks.is_empty() || self.stacks.contains(&found.process);
        let named = names(found);
        let wanted: Vec<(&Found, &String)> = found
            .iter()
            .zip(&named)
            .filter(|(found, _)| is_wanted(found))
            .collect();
        let mut text = String::new();
        for table in &self.tables {
            match table {
                Table::Stacks => stacks(&wanted, self.without_processes, &mut text),
                Table::Clusters => clusters(&wanted, &mut text),
                table => {
                    for (found, name) in &wanted {
                        head(found, name, &mut text);
                        each(*table, found, &mut text);
                    }
                }
            }
        }
        text
    }

    /// Stacks that were asked for and are not there.
    pub fn missing(&self, found: &[Found]) -> Vec<u32> {
        let is_missing = |process: &&u32| !found.iter().any(|found| found.process == **process);
        self.stacks.iter().filter(is_missing).copied().collect()
    }
}

/// The name of each stack: that of its cluster, and its place there by age.
fn names(found: &[Found]) -> Vec<String> {
    let mut place = 0;
    let mut run = None;
    let each = found.iter().map(|found| {
        let own = Some(found.shown.run);
        place = if run == own { place + 1 } else { 0 };
        run = own;
        format!("{}-c{place}", found.shown.cluster_name())
    });
    each.collect()
}

fn line(text: &mut String, words: core::fmt::Arguments<'_>) {
    // Writing to a String does not fail.
    let _ = text.write_fmt(words);
    text.push('\n');
}

fn stacks(wanted: &[(&Found, &String)], without_processes: bool, text: &mut String) {
    // As Onload: nothing at all.
    if wanted.is_empty() {
        return;
    }
    let (head, none) = ("pids", "");
    let head = if without_processes { none } else { head };
    let mut row = |id: &str, name: &str, process: &str| {
        let row = format!("{id:<9} {name:<15} {process}");
        line(text, format_args!("{}", row.trim_end()));
    };
    row("#stack-id", "stack-name", head);
    for (found, name) in wanted {
        let process = found.process.to_string();
        let shown = if without_processes { none } else { &process };
        row(&process, name, shown);
    }
}

/// One cluster a `millstream run`.
fn clusters(wanted: &[(&Found, &String)], text: &mut String) {
    let of_one = wanted.chunk_by(|(one, _), (other, _)| one.shown.run == other.shown.run);
    for cluster in of_one {
        let Some((first, _)) = cluster.first() else {
            continue;
        };
        let (name, size) = (first.shown.cluster_name(), cluster.len());
        let interface = &first.shown.interface;
        line(
            text,
            format_args!("cluster {name}: size={size} interface={interface}"),
        );
        for (found, name) in cluster {
            let (process, shown) = (found.process, &found.shown);
            let new = match shown.has_interface {
                true => "here",
                false => "elsewhere",
            };
            let (listeners, connections) = (shown.listeners.len(), shown.connections_total);
            line(
                text,
                format_args!(
                    "  stack {process}: name={name} program={} listeners={listeners} connections={connections} new-connections={new}",
                    shown.program
                ),
            );
        }
    }
}

fn head(found: &Found, name: &str, text: &mut String) {
    let (process, shown) = (found.process, &found.shown);
    line(
        text,
        format_args!(
            "-------------------- stack {process} {name} ({}, {}) --------------------",
            shown.program, shown.interface
        ),
    );
}

fn each(table: Table, found: &Found, text: &mut String) {
    match table {
        Table::Netstat => netstat(found, text),
        Table::Stats => {
            for (name, value) in &found.shown.figures {
                line(text, format_args!("{name}: {value}"));
            }
        }
        Table::Opts => {
            for (variable, value) in onload::in_force(&found.shown.options) {
                line(text, format_args!("{variable}: {value}"));
            }
        }
        Table::Lots | Table::Stacks | Table::Clusters => {
            for table in [Table::Netstat, Table::Stats, Table::Opts] {
                each(table, found, text);
            }
        }
    }
}

/// Laid out as `netstat -tan` does; of a listener the queues are connections that wait, and its backlog, as in `ss -ltn`.
fn netstat(found: &Found, text: &mut String) {
    let shown = &found.shown;
    line(text, format_args!("{NETSTAT_HEAD}"));
    let mut row = |[unread, queued]: [u64; 2], local: SocketAddr, remote: &str, state: &str| {
        let kind = if local.is_ipv4() { "tcp" } else { "tcp6" };
        let local = local.to_string();
        let ends = format_args!("{local:<23} {remote:<23}");
        line(
            text,
            format_args!("{kind:<5} {unread:>6} {queued:>6} {ends} {state}"),
        );
    };
    for listener in &shown.listeners {
        let any = match listener.address {
            SocketAddr::V4(_) => "0.0.0.0:*",
            SocketAddr::V6(_) => "[::]:*",
        };
        let numbers = [listener.waiting, listener.backlog].map(u64::from);
        row(numbers, listener.address, any, "LISTEN");
    }
    for connection in &shown.connections {
        let numbers = [connection.unread, connection.queued];
        let remote = connection.remote.to_string();
        row(numbers, connection.local, &remote, &state(connection));
    }
    let (listed, total) = (shown.connections.len(), shown.connections_total);
    if listed < total {
        line(text, format_args!("({listed} of {total} connections)"));
    }
}

/// As netstat(8) has it.
fn state(connection: &Connection) -> String {
    match connection.state.as_str() {
        "closed" => String::from("CLOSE"),
        "fin-wait-1" => String::from("FIN_WAIT1"),
        "fin-wait-2" => String::from("FIN_WAIT2"),
        other => other.to_uppercase().replace('-', "_"),
    }
}

const NETSTAT_HEAD: &str =
    "Proto Recv-Q Send-Q Local Address           Foreign Address         State";

/// What `help` says.
pub const HELP: &str = "\
Usage: onload_stackdump [--nopids] [WORD|STACK]...
       millstream stackdump [--nopids] [WORD|STACK]...

Shows the processes whose connections are those of Millstream's stack, started by \"millstream run\" or \"onload\". A STACK is the number of its
process; without any all are shown. Root sees all processes, other users their own.

  stacks    which there are (without any word): number, name, process; nothing if there is none
  clusters  those of one \"millstream run\" together, and how many (size=)
  netstat   listeners and connections, as \"netstat -tan\"
  stats     what was counted
  opts      EF_... variables that have a counterpart, with the values in force
  lots      netstat, stats and opts (without any word, if stacks are named)
  --nopids  stacks without their processes
";

#[cfg(test)]
mod tests;
