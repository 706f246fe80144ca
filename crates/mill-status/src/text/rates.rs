//! Rates per second, between two queries of a server.

use super::columns::{Columns, Side};
use super::number::{float, percent, short};
use super::overview::{entry, head, trouble};
use crate::document::{Figures, Status, Worker};
use mill_metrics::{Kind, ServerCounters, StackCounters};

/// The overview with rates in place of sums. `seconds` lie between `before` and `now`.
pub fn rates(before: &Status, now: &Status, seconds: f64) -> String {
    let mut text = head(now);
    text.push('\n');
    let right = Side::Right;
    let mut table = Columns::new(&[
        ("WORKER", right),
        ("STATE", Side::Left),
        ("CPU", right),
        ("BUSY", right),
        ("TURNS/s", right),
        ("CONNS", right),
        ("ACCEPTED/s", right),
        ("REQUESTS/s", right),
        ("BYTES/s", right),
        ("FRAMES IN/s", right),
        ("OUT/s", right),
    ]);
    let mut troubles = String::new();
    for worker in &now.workers {
        let same = |other: &&Worker| {
            (other.process, other.worker, other.thread)
                == (worker.process, worker.worker, worker.thread)
        };
        if let Some(earlier) = before.workers.iter().find(same) {
            table.push(row(earlier, worker, seconds));
        }
        if worker.state.is_bad() {
            troubles.push_str(&trouble(worker));
        }
    }
    text.push_str(&table.render());
    text.push_str(&troubles);
    text.push('\n');
    let changes = changes(&before.total.server, &now.total.server, seconds, "server");
    entry(&mut text, "server/s", &changes);
    if let (Some(earlier), Some(stack)) = (&before.total.stack, &now.total.stack) {
        entry(
            &mut text,
            "stack/s",
            &self::changes(earlier, stack, seconds, "stack"),
        );
    }
    text
}

fn row(before: &Worker, now: &Worker, seconds: f64) -> Vec<String> {
    let rate = |before: u64, now: u64| per_second(before, now, seconds);
    let server = |name| rate(before.server(name), now.server(name));
    let stack = |name| match &now.stack {
        Some(_) => rate(before.stack(name), now.stack(name)),
        None => String::from("-"),
    };
    let cpu = match (before.cpu_s, now.cpu_s) {
        (Some(before), Some(now)) => percent((now - before).max(0.0), seconds),
        _ => String::from("-"),
    };
    let turns = now.turns.saturating_sub(before.turns);
    let busy = now.turns_busy.saturating_sub(before.turns_busy);
    vec![
        now.worker.to_string(),
        now.state.word().to_owned(),
        cpu,
        percent(float(busy), float(turns)),
        rate(before.turns, now.turns),
        now.server("connections_active").to_string(),
        server("connections_accepted"),
        server("requests"),
        server("bytes_sent"),
        stack("frames_received"),
        stack("frames_transmitted"),
    ]
}

/// Counters that have changed.
fn changes(before: &Figures, now: &Figures, seconds: f64, of: &str) -> String {
    let descriptions = match of {
        "stack" => StackCounters::DESCRIPTIONS,
        _ => ServerCounters::DESCRIPTIONS,
    };
    let counters = descriptions
        .iter()
        .filter(|figure| figure.kind == Kind::Counter);
    let moved = counters.filter_map(|figure| {
        let value = |figures: &Figures| figures.get(figure.name).copied().unwrap_or(0);
        let (before, now) = (value(before), value(now));
        let name = figure.name;
        (now > before).then(|| format!("{name}\u{a0}{}", per_second(before, now, seconds)))
    });
    let moved: Vec<String> = moved.collect();
    if moved.is_empty() {
        return String::from("nothing");
    }
    moved.join(", ")
}

fn per_second(before: u64, now: u64, seconds: f64) -> String {
    let count = float(now.saturating_sub(before));
    if seconds <= 0.0 || count == 0.0 {
        return String::from("0");
    }
    let rate = count / seconds;
    if rate < 10.0 {
        return format!("{rate:.1}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and rates are no less than zero"
    )]
    let rate = rate.round() as u64;
    // A non-breaking space: the rate stays with its unit.
    short(rate).replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Total;
    use crate::verdict::State;

    fn status(requests: u64, turns: u64, cpu_s: f64) -> Status {
        let worker = Worker {
            state: State::Runs,
            turns,
            turns_busy: turns / 4,
            cpu_s: Some(cpu_s),
            server: Figures::from([
                (String::from("requests"), requests),
                (String::from("connections_active"), 3),
            ]),
            ..Worker::default()
        };
        Status {
            total: Total::of(std::slice::from_ref(&worker)),
            workers: vec![worker],
            ..Status::default()
        }
    }

    #[test]
    fn changed_counters_are_shown_per_second() {
        let text = rates(&status(100, 400, 1.0), &status(25_100, 800, 2.5), 2.0);
        let expected = "\
WORKER  STATE  CPU  BUSY  TURNS/s  CONNS  ACCEPTED/s  REQUESTS/s  BYTES/s  FRAMES IN/s  OUT/s
     0  runs   75%   25%      200      3           0      12.5\u{a0}k        0            -      -

server/s      requests\u{a0}12.5\u{a0}k
";
        assert!(text.ends_with(expected), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn unchanged_and_restarted_counters_have_no_rate() {
        let text = rates(&status(100, 400, 1.0), &status(100, 400, 1.0), 1.0);
        assert!(text.ends_with("server/s      nothing\n"), "{text}");
        assert_eq!(per_second(100, 5, 1.0), "0");
        assert_eq!(per_second(0, 5, 0.0), "0");
        assert_eq!(per_second(0, 1, 2.0), "0.5");
    }
}
