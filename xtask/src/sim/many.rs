//! Many worlds on all processors: which failed, and how many there were of each kind.

use super::Worlds;
use mill_simtest::seeds::World;
use mill_sys::clock::monotonic;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// The results of some worlds.
#[derive(Debug, Default)]
struct Count {
    worlds: u64,
    frames: u64,
    /// Virtual time.
    seconds: u64,
    talks: u64,
    /// Worlds of each kind; most are of several.
    kinds: BTreeMap<&'static str, u64>,
    /// Requests of worlds with a proxy, by what became of them.
    found: BTreeMap<&'static str, u64>,
    failed: Vec<u64>,
}

/// Runs the worlds of these seeds, prints progress, and returns their results.
pub(super) fn run(worlds_of: Worlds, seeds: &Range<u64>) -> ExitCode {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let total = seeds.end - seeds.start;
    let next = AtomicU64::new(seeds.start);
    let began = monotonic();
    let mut count = Count::default();
    thread::scope(|scope| {
        let (sender, worlds) = channel();
        for _ in 0..threads {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || work(worlds_of, seeds.end, next, &sender));
        }
        drop(sender);
        for (kinds, world) in worlds {
            count.add(&kinds, &world);
            if count.worlds.is_multiple_of(WORLDS_PER_LINE) && count.worlds < total {
                let seconds = (monotonic() - began).as_secs_f64();
                eprintln!("{}", progress(&count, total, seconds));
            }
        }
    });
    let seconds = (monotonic() - began).as_secs_f64();
    print!("{}", count.text());
    println!("in {seconds:.0} s on {threads} threads");
    if count.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One thread: takes the next seed until none is left.
fn work(worlds: Worlds, end: u64, next: &AtomicU64, sender: &Sender<(Vec<&'static str>, World)>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let result = (worlds.kinds(seed), worlds.of(seed, false));
        // Sending fails only if the counting thread has ended.
        if sender.send(result).is_err() {
            return;
        }
    }
}

impl Count {
    fn add(&mut self, kinds: &[&'static str], world: &World) {
        self.worlds += 1;
        for kind in kinds {
            *self.kinds.entry(kind).or_default() += 1;
        }
        if let World::Ended(outcome) = world {
            self.frames += outcome.frames;
            self.seconds += outcome.took.as_secs();
            self.talks += u64::try_from(outcome.talks).unwrap_or(0);
            for (found, requests) in &outcome.found {
                *self.found.entry(found).or_default() += requests;
            }
        }
        if !world.is_well() {
            super::tell(world, false);
            self.failed.push(world.seed());
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{} worlds, {} talks, {} frames, {} s of virtual time\n",
            self.worlds, self.talks, self.frames, self.seconds
        );
        for (kind, worlds) in &self.kinds {
            text += &format!("{worlds:>9}  {kind}\n");
        }
        for (found, requests) in &self.found {
            text += &format!("{requests:>9}  requests {found}\n");
        }
        if self.failed.is_empty() {
            text += "all is well\n";
        } else {
            let mut failed = self.failed.clone();
            failed.sort_unstable();
            let failed: Vec<String> = failed.iter().map(u64::to_string).collect();
            text += &format!("{} failed: {}\n", failed.len(), failed.join(" "));
        }
        text
    }
}

fn progress(count: &Count, total: u64, seconds: f64) -> String {
    let worlds = u32::try_from(count.worlds).map_or(f64::MAX, f64::from);
    let rate = worlds / seconds.max(0.001);
    let left = u32::try_from(total - count.worlds).map_or(f64::MAX, f64::from) / rate;
    format!(
        "{} of {total} worlds, {} failed, {rate:.0} a second, {left:.0} s left",
        count.worlds,
        count.failed.len()
    )
}

/// Worlds between two lines of progress.
const WORLDS_PER_LINE: u64 = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_are_counted_by_kind_and_failures_named_in_order() {
        let mut count = Count::default();
        for seed in [9, 3] {
            let message = String::from("on purpose");
            count.add(&["flood", "IPv6"], &World::Panicked { seed, message });
        }
        count.add(&["IPv6"], &World::of(1, false));
        let text = count.text();
        assert!(text.starts_with("3 worlds, "), "{text}");
        assert!(text.contains("\n        3  IPv6\n"), "{text}");
        assert!(text.contains("\n        2  flood\n"), "{text}");
        assert!(text.ends_with("2 failed: 3 9\n"), "{text}");
    }

    #[test]
    fn progress_says_how_long_it_will_take() {
        let count = Count {
            worlds: 500,
            ..Count::default()
        };
        let expected = "500 of 1500 worlds, 0 failed, 100 a second, 10 s left";
        assert_eq!(progress(&count, 1500, 5.0), expected);
    }
}
