//! The default view: the server, its workers, and sums.

use super::caches;
use super::columns::{Columns, Side};
use super::number::{bytes, float, percent, uptime};
use crate::document::{Figures, Status, Total, Worker};
use crate::verdict::State;
use mill_metrics::{ServerCounters, StackCounters};

/// One line of a list of servers.
pub fn line(status: &Status) -> Vec<String> {
    let server = &status.server;
    let running = || {
        status
            .workers
            .iter()
            .filter(|worker| worker.state != State::Ended)
    };
    vec![
        server.pid.to_string(),
        server.program.clone(),
        uptime(server.uptime_s),
        running().count().to_string(),
        status.total.server("connections_active").to_string(),
        status.total.server("requests").to_string(),
        server.stack.clone().unwrap_or_else(|| String::from("-")),
        server.configuration.clone(),
    ]
}

/// The whole overview.
pub fn overview(status: &Status) -> String {
    let mut text = head(status);
    text.push('\n');
    text.push_str(&workers(status));
    text.push('\n');
    text.push_str(&sums(&status.total));
    for cache in status.parts.iter().flat_map(|part| &part.caches) {
        entry(&mut text, "cache", &caches::line(cache));
    }
    text
}

pub(super) fn head(status: &Status) -> String {
    let server = &status.server;
    let mut text = String::new();
    for note in &status.notes {
        text.push_str(&format!("{note}\n"));
    }
    let role = match server.role.as_str() {
        "master" => ", the master",
        _ => "",
    };
    if server.role.is_empty() {
        text.push_str(&format!("process {}\n", server.pid));
        return text;
    }
    text.push_str(&format!(
        "{}, process {}{role}, up {}\n",
        server.version,
        server.pid,
        uptime(server.uptime_s)
    ));
    let generation = server.generation;
    entry(
        &mut text,
        "configuration",
        &format!(
            "{} (number {generation} since the start)",
            server.configuration
        ),
    );
    entry(&mut text, "listens at", &server.listen.join(", "));
    if let Some(stack) = &server.stack {
        entry(&mut text, "own stack", stack);
    }
    if let Some(kernel_tls) = server.kernel_tls {
        let kernel = match kernel_tls {
            true => "the kernel could (kTLS), and is not used for it",
            false => "the kernel could not (no kTLS)",
        };
        entry(
            &mut text,
            "TLS records",
            &format!("sealed by workers; {kernel}"),
        );
    }
    for fallback in &server.fallbacks {
        entry(&mut text, "fallback", fallback);
    }
    text
}

/// A name and its value, broken into lines of 100 columns.
pub(super) fn entry(text: &mut String, name: &str, value: &str) {
    let mut line = format!("{name:<14}");
    let indent = line.len();
    for word in value.split(' ') {
        if line.len() > indent && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(indent);
        } else if line.len() > indent {
            line.push(' ');
        }
        line.push_str(word);
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

fn workers(status: &Status) -> String {
    let right = Side::Right;
    let has_stack = status.workers.iter().any(|worker| worker.stack.is_some());
    let mut heads = vec![
        ("WORKER", right),
        ("THREAD", right),
        ("STATE", Side::Left),
        ("CPU", right),
        ("BUSY", right),
        ("TURNS", right),
        ("CONNS", right),
        ("ACCEPTED", right),
        ("REQUESTS", right),
    ];
    if has_stack {
        heads.extend([("FRAMES IN", right), ("FRAMES OUT", right)]);
    }
    let mut table = Columns::new(&heads);
    let mut troubles = String::new();
    for worker in &status.workers {
        table.push(row(worker));
        if worker.state.is_bad() {
            troubles.push_str(&trouble(worker));
        }
    }
    table.render() + &troubles
}

fn row(worker: &Worker) -> Vec<String> {
    let of_stack = |name| {
        let shown = worker
            .stack
            .as_ref()
            .map(|_| worker.stack(name).to_string());
        shown.unwrap_or_else(|| String::from("-"))
    };
    let cpu = worker.cpu_s.map(|cpu| percent(cpu, worker.uptime_s));
    vec![
        worker.worker.to_string(),
        worker.thread.to_string(),
        worker.state.word().to_owned(),
        cpu.unwrap_or_else(|| String::from("-")),
        percent(float(worker.turns_busy), float(worker.turns)),
        worker.turns.to_string(),
        worker.server("connections_active").to_string(),
        worker.server("connections_accepted").to_string(),
        worker.server("requests").to_string(),
        of_stack("frames_received"),
        of_stack("frames_transmitted"),
    ]
}

pub(super) fn trouble(worker: &Worker) -> String {
    let how = match worker.state {
        State::Stopped => ": its process is stopped (SIGSTOP); SIGCONT lets it go on",
        _ => "",
    };
    let (number, silent) = (worker.worker, worker.no_turn_s);
    format!("worker {number}: no turn for {silent:.1} s{how}\n")
}

fn sums(total: &Total) -> String {
    let server = |name| total.server(name);
    let mut text = String::new();
    entry(
        &mut text,
        "connections",
        &format!(
            "{} active ({} reading, {} writing, {} waiting), {} accepted, {} reset by clients",
            server("connections_active"),
            server("connections_reading"),
            server("connections_writing"),
            server("connections_waiting"),
            server("connections_accepted"),
            server("connections_reset"),
        ),
    );
    entry(
        &mut text,
        "requests",
        &format!(
            "{}, answered with {} 2xx, {} 3xx, {} 4xx, {} 5xx; {} sent",
            server("requests"),
            server("responses_2xx"),
            server("responses_3xx"),
            server("responses_4xx"),
            server("responses_5xx"),
            bytes(server("bytes_sent")),
        ),
    );
    let is_trouble = |name: &str| {
        let troubles = [
            "refused_", "limit_", "timeout_", "log_", "accept_", "files_",
        ];
        troubles.iter().any(|trouble| name.starts_with(trouble))
    };
    let names = ServerCounters::DESCRIPTIONS
        .iter()
        .map(|figure| figure.name);
    let troubles = some_of(&total.server, names.filter(|name| is_trouble(name)));
    entry(&mut text, "troubles", &troubles);
    if let Some(stack) = &total.stack {
        stack_sums(&mut text, total, stack);
    }
    text
}

fn stack_sums(text: &mut String, total: &Total, figures: &Figures) {
    let stack = |name| total.stack(name);
    entry(
        text,
        "stack",
        &format!(
            "{} connections, {} half open, {} in TIME-WAIT; {} flows, {} timers",
            stack("connections"),
            stack("half_open"),
            stack("time_wait"),
            stack("flows"),
            stack("timers"),
        ),
    );
    let (sent, again) = (stack("segments_sent"), stack("segments_retransmitted"));
    entry(
        text,
        "segments",
        &format!(
            "{} received, {sent} sent, {again} of them again ({}), {} timeouts, {} out of order",
            stack("segments_received"),
            percent(float(again), float(sent)),
            stack("timeouts"),
            stack("out_of_order"),
        ),
    );
    entry(
        text,
        "frames",
        &format!(
            "{} received, {} dropped of them; {} sent",
            stack("frames_received"),
            dropped(figures),
            stack("frames_transmitted"),
        ),
    );
    let names = StackCounters::DESCRIPTIONS.iter().map(|figure| figure.name);
    let drops = some_of(figures, names.filter(|name| name.starts_with("dropped_")));
    entry(text, "drops", &drops.replace("dropped_", ""));
    entry(
        text,
        "memory",
        &format!(
            "{} of tables, {} unread in {} buffers, {} frames held",
            bytes(stack("table_bytes")),
            bytes(stack("unread_bytes")),
            stack("buffers"),
            stack("frames_held"),
        ),
    );
    let of_link = ["link_", "xdp_", "steering_"];
    let names = StackCounters::DESCRIPTIONS.iter().map(|figure| figure.name);
    let link = names.filter(|name| of_link.iter().any(|prefix| name.starts_with(prefix)));
    let link = some_of(figures, link);
    if link != NONE {
        entry(text, "link", &link);
    }
}

/// Received frames that were dropped.
fn dropped(figures: &Figures) -> u64 {
    let dropped = figures.iter().filter(|(name, _)| {
        let reason = name.strip_prefix("dropped_");
        reason.is_some_and(|reason| !StackCounters::is_late(reason))
    });
    dropped.map(|(_, count)| count).sum()
}

/// Those figures that are not zero.
fn some_of(figures: &Figures, names: impl Iterator<Item = &'static str>) -> String {
    let shown = names.filter_map(|name| {
        let count = figures.get(name).copied().filter(|count| *count > 0)?;
        Some(format!("{name}\u{a0}{count}"))
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        return String::from(NONE);
    }
    shown.join(", ")
}

const NONE: &str = "none";

/// Columns of a line that is broken.
const COLUMNS: usize = 100;

#[cfg(test)]
mod tests;
