//! What to fix before the figures can be trusted.

use mill_lab::record::Environment;

/// One sentence each, with what to do.
pub(super) fn of(environment: &Environment) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: String| warnings.push(text);
    if environment.cores < 2 {
        warn(String::from(
            "client and server share one CPU: figures are of the pair, never of the server",
        ));
    }
    if let Some(governor) = environment
        .governor
        .as_deref()
        .filter(|word| *word != "performance")
    {
        warn(format!(
            "the frequency governor is {governor}: `cpupower frequency-set -g performance` makes runs alike"
        ));
    }
    if let Some(clock) = environment
        .clocksource
        .as_deref()
        .filter(|word| !FAST_CLOCKS.contains(word))
    {
        warn(format!(
            "the clock source is {clock}: reading it is a system call and slows clients"
        ));
    }
    if environment.hypervisor != "none" {
        warn(format!(
            "a hypervisor ({}) is underneath: others may take CPU time; trials in which they do are marked",
            environment.hypervisor
        ));
    }
    if environment.open_files_max < FILES_WANTED {
        warn(format!(
            "a process may open {} files: recipes with more connections run with fewer or several processes",
            environment.open_files_max
        ));
    }
    if !environment.running.is_empty() {
        warn(format!(
            "other programs are busy, and trials that they disturb are marked: {}",
            environment.running.join(", ")
        ));
    }
    warnings
}

/// Clocks that are read without entering the kernel.
const FAST_CLOCKS: [&str; 3] = ["tsc", "kvm-clock", "arch_sys_counter"];

/// The cookbook's clients and servers hold some 100 000 connections.
const FILES_WANTED: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(environment: &Environment, words: &[&str]) {
        let found = of(environment);
        assert_eq!(found.len(), words.len(), "{found:?}");
        for (warning, word) in found.iter().zip(words) {
            assert!(warning.contains(word), "{warning}");
        }
    }

    #[test]
    fn only_what_can_distort_figures_is_reported() {
        let good = Environment {
            cores: 8,
            hypervisor: String::from("none"),
            open_files_max: 1_000_000,
            governor: Some(String::from("performance")),
            clocksource: Some(String::from("tsc")),
            ..Environment::default()
        };
        check(&good, &[]);
        let bad = Environment {
            cores: 1,
            governor: Some(String::from("powersave")),
            clocksource: Some(String::from("hpet")),
            open_files_max: 1024,
            ..good
        };
        check(&bad, &["one CPU", "powersave", "hpet", "1024"]);
    }
}
