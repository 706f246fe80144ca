//! Counts of malloc that vanish when the allocator is changed: the probe still counts libc's malloc, which is no
//! longer called.

use super::blocks::ALLOCATORS;
use super::warning;
use crate::findings::Warning;
use crate::output::quantity::Quantity;
use crate::recipe::Recipe;
use crate::record::{Status, TrialRecord};
use crate::statistics::median;

/// Of a text: two counts at a probe on malloc, another allocator named between them, and requests as many as before.
pub(super) fn of_text(name: &str, text: &str) -> Vec<Warning> {
    let text = text.replace('\\', "");
    let lines: Vec<&str> = text.lines().collect();
    let counts: Vec<Count> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| count_in(line, index))
        .collect();
    let mut warnings = Vec::new();
    for two in counts.windows(2) {
        let [before, after] = two else { continue };
        let between = lines[before.index..after.index].join("\n").to_lowercase();
        let named = ALLOCATORS.into_iter().find(|known| between.contains(known));
        let collapsed = after.malloc < before.malloc * COLLAPSE;
        let as_busy = match (before.work, after.work) {
            (Some(then), Some(now)) => now > then * STEADY,
            _ => true,
        };
        let Some(allocator) = named else { continue };
        if collapsed && as_busy && !after.probe.contains(allocator) {
            let meanwhile = after.work.map_or(String::new(), |work| {
                format!(" while the probe beside it counted {work}")
            });
            let text = format!(
                "{name}:{} and {name}:{}: {} calls of malloc became {} with {allocator}{meanwhile}, at {}. The probe does not see {allocator}'s malloc.",
                before.index + 1,
                after.index + 1,
                before.malloc,
                after.malloc,
                after.probe,
            );
            warnings.push(warning("wrong-allocator", text, ADVICE));
        }
    }
    warnings
}

/// `1,027,994 probe_libc:malloc 256,699 probe:tcp_recvmsg`.
struct Count {
    /// Of the line, from 0.
    index: usize,
    malloc: f64,
    probe: String,
    /// What another probe of the same line counted: the work done meanwhile.
    work: Option<f64>,
}

fn count_in(line: &str, index: usize) -> Option<Count> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pairs: Vec<(f64, &str)> = words
        .windows(2)
        .filter_map(|two| Some((Quantity::plain(two[0])?.value, two[1])))
        .filter(|(_, probe)| probe.contains(':') && probe.chars().any(char::is_alphabetic))
        .collect();
    let (malloc, probe) = pairs.iter().find(|(_, probe)| probe.ends_with("malloc"))?;
    let work = pairs
        .iter()
        .find(|(_, probe)| !probe.ends_with("malloc"))
        .map(|(count, _)| *count);
    Some(Count {
        index,
        malloc: *malloc,
        probe: String::from(*probe),
        work,
    })
}

/// Of a run: systems that differ in the allocator, one of which hardly calls it.
pub(super) fn of_run(recipe: &Recipe, trials: &[TrialRecord]) -> Vec<Warning> {
    recipe
        .compare
        .iter()
        .filter(|comparison| comparison.axis == "system")
        .filter_map(|comparison| {
            let allocator = allocator(recipe, &comparison.to)?;
            if allocator == "glibc" || self::allocator(recipe, &comparison.from)? == allocator {
                return None;
            }
            let calls = |system: &str| of_system(trials, system, "malloc_per_request");
            let (before, after) = (calls(&comparison.from)?, calls(&comparison.to)?);
            (after < before * COLLAPSE).then(|| {
                let text = format!(
                    "{} calls malloc {before:.2} times a request, {} {after:.2} times: the probe does not see {allocator}'s malloc.",
                    comparison.from, comparison.to
                );
                warning("wrong-allocator", text, ADVICE)
            })
        })
        .collect()
}

/// The allocator that a system is configured with.
fn allocator(recipe: &Recipe, system: &str) -> Option<String> {
    let table = recipe.system.get(system)?;
    let said = table
        .get("factors")
        .and_then(|factors| factors.get("allocator"))
        .or_else(|| table.get("allocator"));
    Some(
        said.and_then(toml::Value::as_str)
            .unwrap_or("glibc")
            .to_owned(),
    )
}

fn of_system(trials: &[TrialRecord], system: &str, metric: &str) -> Option<f64> {
    let values: Vec<f64> = trials
        .iter()
        .filter(|trial| trial.status == Status::Measured)
        .filter(|trial| trial.point.get("system").is_some_and(|name| name == system))
        .filter_map(|trial| trial.figures.get(metric).copied())
        .collect();
    median(&values)
}

const ADVICE: &str = "Look in /proc/PID/maps for the library whose malloc the server calls, and put the probe there.";

/// Share of the calls that are left, below which they were not saved but missed: a server that allocates for each request does so with any allocator.
const COLLAPSE: f64 = 0.1;

/// Share of the work: as many requests as before, or more.
const STEADY: f64 = 0.8;
