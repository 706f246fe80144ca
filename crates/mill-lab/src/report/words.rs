//! Sentences and lists that all forms of a report share.

use super::number::{figure, grouped};
use crate::findings::{Counts, Findings};
use crate::metric::Unit;
use crate::record::{CommandLine, Environment};
use crate::store::DateTime;

/// Where it comes from, how big it was, when it began.
pub(super) fn subtitle(findings: &Findings) -> String {
    let origin = findings
        .origin
        .as_ref()
        .map(|origin| format!("{origin}. "))
        .unwrap_or_default();
    format!(
        "{origin}Recipe {}, size {}, begun {} UTC on {}.",
        findings.run.recipe,
        findings.run.size,
        DateTime::of_unix_ms(findings.run.started_ms).text(),
        if findings.environment.host.is_empty() {
            "an unnamed machine"
        } else {
            &findings.environment.host
        }
    )
}

/// What has to be known before anything else is believed.
pub(super) fn banner(findings: &Findings) -> Vec<String> {
    let mut out = Vec::new();
    let Counts {
        measured,
        failed,
        missing,
        ..
    } = findings.counts;
    if findings.interrupted {
        out.push(format!(
            "Interrupted: {measured} of {} trials were measured; what follows rests on those.",
            findings.run.trials
        ));
    } else if missing > 0 {
        out.push(format!(
            "{} of {} trials {} not run.",
            missing,
            findings.run.trials,
            was(missing)
        ));
    }
    if failed > 0 {
        out.push(format!(
            "{failed} {} failed that should have worked; the run's folder holds what the programs said.",
            if failed == 1 { "trial" } else { "trials" }
        ));
    }
    out
}

fn was(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

/// The noise floor, unless the summary has it already.
pub(super) fn noise(findings: &Findings) -> Option<&str> {
    let text = findings.noise.as_ref()?.text.as_str();
    let said = findings.summary.iter().any(|it| it.text == text);
    (!said).then_some(text)
}

/// "47 of 48 trials measured, 1 disturbed and not used."
pub(super) fn counts(findings: &Findings) -> String {
    let counted = counted(findings, "not possible on this machine", "not run");
    format!("{counted}.")
}

/// The same with other words for what is not there.
pub(crate) fn counted(findings: &Findings, absent: &str, missing: &str) -> String {
    let counts = findings.counts;
    let mut parts = vec![format!(
        "{} of {} trials measured",
        counts.measured + counts.disturbed_used,
        findings.run.trials
    )];
    let others = [
        (counts.disturbed_used, "of them disturbed"),
        (
            counts.disturbed - counts.disturbed_used,
            "disturbed and not used",
        ),
        (counts.absent, absent),
        (counts.failed, "failed"),
        (counts.missing, missing),
    ];
    for (count, word) in others {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(", ")
}

/// Name and value, the most wanted first.
pub(super) fn environment(environment: &Environment) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            out.push((name.to_owned(), value));
        }
    };
    line("Machine", environment.host.clone());
    line("CPU", processor(environment));
    if environment.memory_bytes > 0 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "shown with three digits; exact below 8 PiB anyway"
        )]
        line(
            "Memory",
            figure(environment.memory_bytes as f64, Unit::Bytes),
        );
    }
    line("Hypervisor", environment.hypervisor.clone());
    line("Kernel", environment.kernel.clone());
    line("Distribution", environment.distribution.clone());
    let programs: Vec<String> = environment
        .versions
        .iter()
        .map(|(tool, text)| format!("{tool} {}", version(text)))
        .collect();
    line("Programs", programs.join(", "));
    line("Interfaces", environment.interfaces.join("; "));
    let optional = [
        ("Governor", &environment.governor),
        ("Clock source", &environment.clocksource),
        ("Transparent huge pages", &environment.transparent_hugepage),
        ("Congestion control", &environment.congestion_control),
    ];
    for (name, value) in optional {
        line(name, value.clone().unwrap_or_default());
    }
    if environment.open_files_max > 0 {
        line(
            "Open files, at most",
            grouped(&environment.open_files_max.to_string()),
        );
    }
    line("Mitigations", environment.mitigations.join("; "));
    line("Running besides", environment.running.join(", "));
    for (what, why) in &environment.absent {
        line(&format!("Absent: {what}"), why.clone());
    }
    out
}

/// The first word of a tool's version text that is a version: "nginx version: nginx/1.22.1" is 1.22.1.
fn version(text: &str) -> &str {
    let number = |word: &str| {
        let digits = word.split('.').next().unwrap_or("");
        word.contains('.') && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    text.split(|character: char| character.is_whitespace() || "/-,()".contains(character))
        .find(|word| number(word))
        .unwrap_or(text)
}

fn processor(environment: &Environment) -> String {
    let mut parts: Vec<String> = Vec::new();
    if !environment.cpu.is_empty() {
        parts.push(environment.cpu.clone());
    }
    match environment.cores {
        0 => (),
        1 => parts.push(String::from("1 CPU")),
        cores => parts.push(format!("{cores} CPUs")),
    }
    if environment.nodes > 1 {
        parts.push(format!("{} NUMA nodes", environment.nodes));
    }
    parts.join(", ")
}

/// What made the report; no time of writing, so that the same run gives the same bytes.
pub(super) fn made(findings: &Findings) -> Vec<(String, String)> {
    let run = &findings.run;
    let mut out = vec![(String::from("millstream"), run.millstream.clone())];
    if let Some(commit) = &run.commit {
        out.push((String::from("commit"), commit.clone()));
    }
    out.push((String::from("run"), run.id.clone()));
    out.push((String::from("seed"), run.seed.to_string()));
    if !run.overrides.is_empty() {
        out.push((String::from("overrides"), run.overrides.join(" ")));
    }
    out
}

/// A command line that a shell splits into these words.
pub(super) fn shell(words: &[String]) -> String {
    let quote = |word: &String| {
        let plain =
            |character: char| character.is_ascii_alphanumeric() || "-_./:=,+@%".contains(character);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Commands under a comment with their role.
pub(super) fn commands(lines: &[CommandLine]) -> String {
    lines
        .iter()
        .map(|command| {
            let role = format!("# {}\n", command.role.replace('\n', " "));
            if command.line.is_empty() {
                role
            } else {
                format!("{role}{}\n", command.line)
            }
        })
        .collect()
}

/// Prose whose numbers stay on one line with their percent sign.
pub(super) fn unbroken(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" %") {
        let after_digit = rest[..at].ends_with(|last: char| last.is_ascii_digit());
        out.push_str(&rest[..at]);
        out.push(if after_digit { '\u{a0}' } else { ' ' });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out
}

/// The beginning and the end of a long text, cut at ends of lines, and how much is left out.
pub(super) fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let head_end = floor_boundary(text, bytes_max / 3 * 2);
    let head_end = text[..head_end].rfind('\n').map_or(head_end, |at| at + 1);
    let tail_start = floor_boundary(text, text.len() - bytes_max / 3);
    let tail_start = text[tail_start..]
        .find('\n')
        .map_or(tail_start, |at| tail_start + at + 1);
    let left_out = &text[head_end..tail_start];
    format!(
        "{}… {} lines ({} bytes) are left out here; the run's folder has them …\n{}",
        &text[..head_end],
        left_out.lines().count(),
        left_out.len(),
        &text[tail_start..]
    )
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn shell_words_survive_a_shell() {
        let cases = [
            (vec!["millstream", "lab"], "millstream lab"),
            (vec!["a b", "it's", ""], "'a b' 'it'\\''s' ''"),
            (vec!["$(rm)"], "'$(rm)'"),
        ];
        for (words, expected) in cases {
            let words: Vec<String> = words.into_iter().map(String::from).collect();
            assert_eq!(shell(&words), expected);
        }
    }

    #[test]
    fn of_a_tools_own_words_the_version_is_kept() {
        for (text, expected) in [
            ("This is ApacheBench, Version 2.3 <$Revision$>", "2.3"),
            ("nginx version: nginx/1.22.1", "1.22.1"),
            ("wrk debian/4.1.0-3+b2 [epoll]", "4.1.0"),
            ("ip utility, iproute2-6.1.0, libbpf 1.1.2", "6.1.0"),
            ("iperf 3.12 (cJSON 1.7.15)", "3.12"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(version(text), expected);
        }
    }

    #[test]
    fn a_percent_sign_stays_with_its_number() {
        assert_eq!(
            unbroken("7.5 % or a % sign, 9 %"),
            "7.5\u{a0}% or a % sign, 9\u{a0}%"
        );
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        let text: String = (0..1000).map(|line| format!("line {line}, µ\n")).collect();
        let kept = shortened(&text, 900);
        assert!(kept.len() < 1100, "{}", kept.len());
        assert!(kept.starts_with("line 0, µ\n"));
        assert!(kept.ends_with("line 999, µ\n"));
        assert!(kept.contains("lines ("), "{kept}");
        assert_eq!(shortened("short", 900), "short");
        // No end of a line to cut at.
        assert!(shortened(&"µ".repeat(1000), 301).contains("left out"));
    }

    #[test]
    fn a_banner_appears_only_where_something_went_wrong() {
        assert_eq!(banner(&example::jemalloc()), Vec::<String>::new());
        let words = banner(&example::cookbook());
        assert!(words[0].starts_with("Interrupted: 31 of 48"), "{words:?}");
        assert!(words[1].starts_with("1 trial failed"), "{words:?}");
    }

    #[test]
    fn the_noise_floor_is_said_once() {
        let mut findings = example::jemalloc();
        let text = noise(&findings).expect("a floor").to_owned();
        findings.summary[2].text = text;
        assert_eq!(noise(&findings), None);
    }

    #[test]
    fn counts_name_only_what_happened() {
        assert_eq!(
            counts(&example::jemalloc()),
            "47 of 48 trials measured, 1 disturbed and not used."
        );
    }
}
