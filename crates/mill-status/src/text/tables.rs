//! The tables that are requested by name.

use super::columns::{Columns, Side};
use super::number::micros;
use crate::document::{Figures, Status};
use crate::tables::{Connection, Fact, Part};
use mill_metrics::{Description, ServerCounters, StackCounters};

const LEFT: Side = Side::Left;
const RIGHT: Side = Side::Right;

/// How much of a counter's help is shown beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// As much as fits a terminal's line.
    Fitting,
    /// All of it: for files and programs.
    Whole,
}

impl Help {
    fn of(self, help: &str) -> String {
        if self == Self::Whole || help.chars().count() <= HELP_COLUMNS {
            return help.to_owned();
        }
        let cut: String = help.chars().take(HELP_COLUMNS - 1).collect();
        let cut = cut.rsplit_once(' ').map_or(cut.as_str(), |(cut, _)| cut);
        format!("{cut} …")
    }
}

/// Connections of all workers, in two lines each, as `ss -ti` has them.
pub fn connections(status: &Status) -> String {
    let heads = [
        ("STATE", LEFT),
        ("RECV-Q", RIGHT),
        ("SEND-Q", RIGHT),
        ("LOCAL", LEFT),
        ("PEER", LEFT),
        ("BY", LEFT),
        ("WORKER", RIGHT),
    ];
    let mut table = Columns::new(&heads);
    let mut details = Vec::new();
    for part in &status.parts {
        for connection in &part.connections {
            table.push(vec![
                connection.state.clone(),
                connection.receive_queue.to_string(),
                connection.send_queue.to_string(),
                connection.local.clone(),
                connection.remote.clone(),
                connection.by.clone(),
                part.worker.to_string(),
            ]);
            details.push(detail(connection));
        }
    }
    let mut text = String::new();
    let lines = table.render();
    let mut lines = lines.lines();
    text.push_str(lines.next().unwrap_or_default());
    text.push('\n');
    for (line, detail) in lines.zip(details) {
        text.push_str(&format!("{line}\n{detail}"));
    }
    let shown: usize = status.parts.iter().map(|part| part.connections.len()).sum();
    let total: u64 = status.parts.iter().map(|part| part.connections_total).sum();
    if shown as u64 != total {
        text.push_str(&format!("{shown} of {total} connections shown\n"));
    }
    text
}

/// The second line of a connection, in the format of `ss -ti`.
fn detail(connection: &Connection) -> String {
    if connection.mss == 0 {
        return String::new();
    }
    let mut words = connection.options.clone();
    let ms = |us: u64| micros(us);
    if connection.rtt_us > 0 {
        let (rtt, var) = (ms(connection.rtt_us), ms(connection.rttvar_us));
        words.push(format!("rtt:{rtt}/{var}"));
    }
    words.push(format!("rto:{}", ms(connection.rto_us)));
    words.push(format!("mss:{}", connection.mss));
    words.push(format!("cwnd:{}", connection.cwnd));
    if let Some(ssthresh) = connection.ssthresh {
        words.push(format!("ssthresh:{ssthresh}"));
    }
    words.push(format!("snd_wnd:{}", connection.send_window));
    words.push(format!("rcv_wnd:{}", connection.receive_window));
    for (name, value) in [
        ("unacked", u64::from(connection.in_flight)),
        ("sacked", u64::from(connection.sacked)),
        ("lost", u64::from(connection.lost)),
        ("retrans", u64::from(connection.retransmitted)),
        ("backoff", u64::from(connection.backoff)),
        ("bytes_acked", connection.bytes_acked),
    ] {
        if value > 0 {
            words.push(format!("{name}:{value}"));
        }
    }
    if connection.recovery != "open" {
        words.push(connection.recovery.clone());
    }
    if connection.is_orphan {
        words.push(String::from("orphan"));
    }
    wrapped(&words)
}

/// Words in lines of 100 columns, indented by eight.
fn wrapped(words: &[String]) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for word in words {
        if !line.is_empty() && INDENT + line.len() + 1 + word.len() > COLUMNS {
            text.push_str(&format!("{:INDENT$}{line}\n", ""));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(&format!("{:INDENT$}{line}\n", ""));
    text
}

/// Listening addresses of the stack.
pub fn listeners(status: &Status) -> String {
    if !has_stack(status) {
        return String::from(NO_STACK);
    }
    let mut table = Columns::new(&[
        ("ADDRESS", LEFT),
        ("ACCEPT-Q", RIGHT),
        ("BACKLOG", RIGHT),
        ("SYN-Q", RIGHT),
        ("SYN-MAX", RIGHT),
        ("COOKIES", LEFT),
        ("WORKER", RIGHT),
    ]);
    for part in &status.parts {
        for listener in &part.listeners {
            table.push(vec![
                listener.address.clone(),
                listener.waiting.to_string(),
                listener.backlog.to_string(),
                listener.half_open.to_string(),
                listener.half_open_max.to_string(),
                String::from(if listener.sends_cookies { "sent" } else { "no" }),
                part.worker.to_string(),
            ]);
        }
    }
    table.render()
}

/// Neighbours on the link.
pub fn neighbors(status: &Status) -> String {
    if !has_stack(status) {
        return String::from(NO_STACK);
    }
    let mut table = Columns::new(&[
        ("NEIGHBOR", LEFT),
        ("MAC", LEFT),
        ("STATE", LEFT),
        ("WORKER", RIGHT),
    ]);
    for part in &status.parts {
        for neighbor in &part.neighbors {
            table.push(vec![
                neighbor.address.clone(),
                or_dash(&neighbor.mac),
                neighbor.state.clone(),
                part.worker.to_string(),
            ]);
        }
    }
    table.render()
}

/// Routes.
pub fn routes(status: &Status) -> String {
    if !has_stack(status) {
        return String::from(NO_STACK);
    }
    let mut table = Columns::new(&[("TARGET", LEFT), ("VIA", LEFT), ("WORKER", RIGHT)]);
    for part in &status.parts {
        for route in &part.routes {
            let via = match (&route.gateway, route.is_elsewhere) {
                (_, true) => String::from("another interface, by kernel sockets"),
                (Some(gateway), false) => gateway.clone(),
                (None, false) => String::from("the link"),
            };
            table.push(vec![route.target.clone(), via, part.worker.to_string()]);
        }
    }
    table.render()
}

fn has_stack(status: &Status) -> bool {
    status.workers.iter().any(|worker| worker.stack.is_some())
}

/// Rings and device of each worker.
pub fn rings(status: &Status) -> String {
    facts(status, |part| &part.rings)
}

/// Timers of each worker.
pub fn timers(status: &Status) -> String {
    facts(status, |part| &part.timers)
}

fn facts(status: &Status, of: impl Fn(&Part) -> &Vec<Fact>) -> String {
    let mut text = String::new();
    for part in &status.parts {
        let facts = of(part);
        if facts.is_empty() {
            continue;
        }
        text.push_str(&format!("worker {}\n", part.worker));
        let mut table = Columns::new(&[("  NAME", LEFT), ("VALUE", LEFT)]);
        for fact in facts {
            table.push(vec![format!("  {}", fact.name), fact.value.clone()]);
        }
        text.push_str(&table.render());
    }
    if text.is_empty() {
        text.push_str(NO_STACK);
    }
    text
}

/// Every reason for drops and its count, of each worker.
pub fn drops(status: &Status, help: Help) -> String {
    if !has_stack(status) {
        return String::from(NO_STACK);
    }
    let mut heads = vec![("REASON", LEFT), ("WAY", LEFT), ("FRAMES", RIGHT)];
    heads.push(("WHAT IT IS", LEFT));
    let mut table = Columns::new(&heads);
    for figure in StackCounters::DESCRIPTIONS {
        let Some(reason) = figure.name.strip_prefix("dropped_") else {
            continue;
        };
        let way = if StackCounters::is_late(reason) {
            "out"
        } else {
            "in"
        };
        let text = figure
            .help
            .rsplit_once(": ")
            .map_or(figure.help, |(_, rest)| rest);
        table.push(vec![
            String::from(reason),
            String::from(way),
            status.total.stack(figure.name).to_string(),
            help.of(text),
        ]);
    }
    let stack = |name| status.total.stack(name);
    let (received, handled) = (stack("frames_received"), stack("frames_handled"));
    let dropped = received.saturating_sub(handled);
    let sum = format!(
        "{received} frames received = {handled} handled + {dropped} dropped on the way in\n"
    );
    table.render() + &sum
}

/// All counters that are not zero, as `nstat` lists them; with `all` the others too.
pub fn counters(status: &Status, all: bool, help: Help) -> String {
    let mut table = Columns::new(&[("COUNTER", LEFT), ("VALUE", RIGHT), ("WHAT IT IS", LEFT)]);
    let mut add = |prefix: &str, descriptions: &[Description], figures: &Figures| {
        for figure in descriptions {
            let value = figures.get(figure.name).copied().unwrap_or(0);
            if value > 0 || all {
                let name = format!("{prefix}{}", figure.name);
                table.push(vec![name, value.to_string(), help.of(figure.help)]);
            }
        }
    };
    add("", ServerCounters::DESCRIPTIONS, &status.total.server);
    if let Some(stack) = &status.total.stack {
        add("stack.", StackCounters::DESCRIPTIONS, stack);
    }
    table.render()
}

/// Options of the stack, and where they were set.
pub fn options(status: &Status) -> String {
    let mut table = Columns::new(&[("OPTION", LEFT), ("VALUE", LEFT), ("FROM", LEFT)]);
    for option in &status.server.options {
        table.push(vec![
            option.name.clone(),
            option.value.clone(),
            option.from.clone(),
        ]);
    }
    if table.is_empty() {
        return String::from("the server has no stack of its own\n");
    }
    table.render()
}

fn or_dash(text: &str) -> String {
    if text.is_empty() {
        return String::from("-");
    }
    text.to_owned()
}

const NO_STACK: &str = "no worker has a stack of its own\n";

const INDENT: usize = 8;
const COLUMNS: usize = 100;

/// Columns of a line beside name and value.
const HELP_COLUMNS: usize = 46;

#[cfg(test)]
mod tests;
