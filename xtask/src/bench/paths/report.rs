//! Tables of what was measured.

use mill_lab::desk::sheet::{row, sheet};

use super::sender::{Algorithm, Stack, Subject};
use super::trial::{Alone, Together, Trust};
use mill_simtest::standard_paths::StandardPath as Path;

/// Everything that was measured.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) alone: Vec<(Path, Subject, Alone)>,
    pub(super) together: Vec<(Path, [Subject; 2], Together)>,
    /// Of trials that were repeated.
    pub(super) disturbed: usize,
}

/// A table with its title.
struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

/// Of goodput over the kernel's …
const GOODPUT_MIN: f64 = 0.95;
/// … and of a bottleneck's share.
const SHARE: std::ops::RangeInclusive<f64> = 0.4..=0.6;

/// The four of a row, in pairs.
const SUBJECTS: [Subject; 4] = [
    subject(Stack::Kernel, Algorithm::Cubic),
    subject(Stack::Ours, Algorithm::Cubic),
    subject(Stack::Kernel, Algorithm::Bbr),
    subject(Stack::Ours, Algorithm::Bbr),
];

const fn subject(stack: Stack, algorithm: Algorithm) -> Subject {
    Subject { stack, algorithm }
}

impl Results {
    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let tables = self.tables().map(|table| {
            let right: Vec<usize> = (1..table.rows[0].len()).collect();
            format!("{}\n\n{}\n", table.title, sheet(&table.rows, &right))
        });
        tables.collect::<String>() + &self.notes()
    }

    /// For a page.
    pub(super) fn markdown(&self) -> String {
        let tables = self.tables().map(|table| {
            let mut text = format!("## {}\n\n", table.title);
            for (index, row) in table.rows.iter().enumerate() {
                text.push_str(&format!("| {} |\n", row.join(" | ")));
                if index == 0 {
                    let rule = std::iter::once("| ---").chain(row.iter().skip(1).map(|_| "---:"));
                    text.push_str(&format!("{} |\n", rule.collect::<Vec<_>>().join(" | ")));
                }
            }
            text.push('\n');
            text
        });
        tables.collect::<String>() + &self.notes()
    }

    fn tables(&self) -> impl Iterator<Item = Table> {
        let tables = [
            self.goodput(),
            self.queues(),
            self.short(),
            self.drops(),
            self.shares(),
        ];
        tables.into_iter().filter(|table| table.rows.len() > 1)
    }

    fn goodput(&self) -> Table {
        let head = [
            "path",
            "kernel cubic",
            "our cubic",
            "ratio",
            "kernel bbr",
            "our bbr",
            "ratio",
        ];
        let mut rows = vec![row(head)];
        for path in self.paths() {
            let mut cells = vec![format!("{}: {}", path.name, path.description())];
            for algorithm in [Algorithm::Cubic, Algorithm::Bbr] {
                let [kernel, ours] = [Stack::Kernel, Stack::Ours].map(|stack| {
                    self.of(path, subject(stack, algorithm), |alone| alone.goodput / 1e6)
                });
                let ratios: Vec<f64> = ours
                    .iter()
                    .zip(&kernel)
                    .map(|(ours, kernel)| ours / kernel)
                    .collect();
                cells.extend([number(&kernel, 1), number(&ours, 1)]);
                let verdict = |ratio| if ratio >= GOODPUT_MIN { "" } else { " missed" };
                cells.push(judged(&ratios, verdict));
            }
            rows.push(cells);
        }
        Table {
            title: String::from("Goodput of one download, Mbit/s"),
            rows,
        }
    }

    fn queues(&self) -> Table {
        let cell = |path: Path, subject| {
            let of = |what: fn(&Alone) -> f64| {
                let bytes = self.of(path, subject, what);
                bytes
                    .into_iter()
                    .map(|bytes| path.milliseconds_of(bytes))
                    .collect::<Vec<_>>()
            };
            let mean = of(|alone| alone.queue.mean);
            let p95 = of(|alone| alone.queue.p95);
            format!("{} / {}", number(&mean, 1), number(&p95, 1))
        };
        self.by_subject(
            "Standing queue in the second half of it, ms of the wire, mean / p95",
            cell,
        )
    }

    fn short(&self) -> Table {
        let cell = |path, subject| {
            let of = |place: usize| {
                let times = self.of(path, subject, |alone| {
                    alone.short[place].unwrap_or(f64::NAN)
                });
                number(&times, 2)
            };
            format!("{} / {}", of(0), of(1))
        };
        self.by_subject("Seconds until 100 kB / 1 MB had come", cell)
    }

    fn drops(&self) -> Table {
        let cell = |path, subject| {
            let dropped = self.of(path, subject, |alone| alone.dropped_per_mille);
            number(&dropped, 1)
        };
        self.by_subject("Frames that found the queue full, of a thousand", cell)
    }

    fn by_subject(&self, title: &str, cell: impl Fn(Path, Subject) -> String) -> Table {
        let names = SUBJECTS.map(Subject::name);
        let mut rows = vec![row(["path", names[0], names[1], names[2], names[3]])];
        for path in self.paths() {
            let cells = SUBJECTS.map(|subject| cell(path, subject));
            let name = String::from(path.name);
            rows.push(std::iter::once(name).chain(cells).collect());
        }
        Table {
            title: String::from(title),
            rows,
        }
    }

    fn shares(&self) -> Table {
        let head = [
            "path",
            "flows",
            "Mbit/s",
            "share of the first",
            "queue, ms, mean / p95",
        ];
        let mut rows = vec![row(head)];
        let mut known: Vec<(&str, [Subject; 2])> = Vec::new();
        for (path, subjects, _) in &self.together {
            let subjects = in_order(*subjects).0;
            if known.contains(&(path.name, subjects)) {
                continue;
            }
            known.push((path.name, subjects));
            rows.push(self.share(*path, subjects));
        }
        Table {
            title: String::from("Two downloads at one bottleneck"),
            rows,
        }
    }

    /// Of one pair of flows, whichever began.
    fn share(&self, path: Path, subjects: [Subject; 2]) -> Vec<String> {
        let mut goodput = [Vec::new(), Vec::new()];
        let (mut shares, mut mean, mut p95) = (Vec::new(), Vec::new(), Vec::new());
        for (_, _, together) in self
            .together
            .iter()
            .filter(|(other, pair, _)| other.name == path.name && in_order(*pair).0 == subjects)
        {
            let pair = self.pair_of(together);
            let [first, second] = pair;
            goodput[0].push(first / 1e6);
            goodput[1].push(second / 1e6);
            shares.push(first / (first + second));
            mean.push(path.milliseconds_of(together.queue.mean));
            p95.push(path.milliseconds_of(together.queue.p95));
        }
        let names = subjects.map(Subject::name);
        let verdict = |share| {
            let is_ours = subjects[0].stack == Stack::Ours;
            let is_judged = is_ours && subjects[0].algorithm == subjects[1].algorithm;
            if is_judged && !SHARE.contains(&share) {
                " missed"
            } else {
                ""
            }
        };
        vec![
            String::from(path.name),
            format!("{} beside {}", names[0], names[1]),
            format!("{} + {}", number(&goodput[0], 1), number(&goodput[1], 1)),
            judged(&shares, verdict),
            format!("{} / {}", number(&mean, 1), number(&p95, 1)),
        ]
    }

    /// Rates in the order of [`in_order`].
    fn pair_of(&self, together: &Together) -> [f64; 2] {
        let found = self
            .together
            .iter()
            .find(|(_, _, other)| std::ptr::eq(other, together));
        let is_swapped = found.is_some_and(|(_, subjects, _)| in_order(*subjects).1);
        let [first, second] = together.goodput;
        if is_swapped {
            [second, first]
        } else {
            [first, second]
        }
    }

    fn notes(&self) -> String {
        let alone = self.alone.iter().map(|(_, _, alone)| alone.trust);
        let together = self.together.iter().map(|(_, _, together)| together.trust);
        let trusts: Vec<Trust> = alone.chain(together).collect();
        let late: Vec<f64> = trusts.iter().map(|trust| trust.late_per_mille).collect();
        let most = late.iter().copied().fold(0.0, f64::max);
        let latest = trusts
            .iter()
            .map(|trust| trust.latest)
            .max()
            .unwrap_or_default();
        let left = trusts.iter().filter(|trust| trust.is_disturbed()).count();
        format!(
            "{} trials; of each thousand frames {} (median; {most:.1} in the worst trial) left the emulator more than a millisecond late, \
             the latest by {:.1} ms; {} disturbed trials were repeated, {left} of those above are disturbed.\n",
            trusts.len(),
            number(&late, 2),
            latest.as_secs_f64() * 1e3,
            self.disturbed
        )
    }

    /// A figure of all trials of a subject on a path, in their order.
    fn of(&self, path: Path, subject: Subject, figure: impl Fn(&Alone) -> f64) -> Vec<f64> {
        let trials = self.alone.iter();
        let those = trials.filter(|(other, whose, _)| other.name == path.name && *whose == subject);
        those.map(|(_, _, alone)| figure(alone)).collect()
    }

    /// Those with downloads of their own.
    fn paths(&self) -> Vec<Path> {
        let mut paths: Vec<Path> = Vec::new();
        for (path, ..) in &self.alone {
            if paths.iter().all(|known| known.name != path.name) {
                paths.push(*path);
            }
        }
        paths
    }
}

/// Ours before the kernel's, BBR before CUBIC; and whether they were the other way around.
fn in_order([first, second]: [Subject; 2]) -> ([Subject; 2], bool) {
    let place = |subject: Subject| {
        (
            subject.stack == Stack::Kernel,
            subject.algorithm == Algorithm::Cubic,
        )
    };
    if place(first) <= place(second) {
        ([first, second], false)
    } else {
        ([second, first], true)
    }
}

/// The median, with the range behind it and a verdict.
fn judged(values: &[f64], verdict: impl Fn(f64) -> &'static str) -> String {
    let Some(median) = median(values) else {
        return String::new();
    };
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{median:.2} ({least:.2} to {most:.2}){}", verdict(median))
}

/// The median.
fn number(values: &[f64], digits: usize) -> String {
    match median(values) {
        Some(median) if median.is_finite() => format!("{median:.digits$}"),
        _ => String::from("–"),
    }
}

/// Of an even count the mean of the two in the middle.
fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

#[cfg(test)]
mod tests;
