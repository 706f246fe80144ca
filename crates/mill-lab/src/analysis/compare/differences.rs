//! What differs between two runs besides their figures.

use super::super::Kept;
use crate::recipe::Recipe;

/// Loads that differ: the tool and its arguments, the objects, and the variables that stand in either.
pub(super) fn of_loads(a: &Recipe, b: &Recipe) -> Vec<String> {
    let mut found = of_tables("load", &a.load, &b.load);
    found.extend(of_tables("content", &a.content, &b.content));
    let text = format!("{} {}", a.load, a.content);
    let named = |name: &str| text.contains(&format!("${{{name}}}"));
    let used = |table: &toml::Table| -> toml::Table {
        let kept = table.iter().filter(|(name, _)| named(name));
        kept.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    found.extend(of_tables("vars", &used(&a.vars), &used(&b.vars)));
    if a.id != b.id {
        found.push(format!("recipe: {} and {}", a.id, b.id));
    }
    found
}

/// Version, size, machine, topology: `what: A's and B's`.
pub(super) fn of_surroundings(a: &Kept, b: &Kept) -> Vec<String> {
    let (run_a, run_b) = (&a.run, &b.run);
    let (here, there) = (&a.environment, &b.environment);
    let commit = |run: &crate::record::RunRecord| run.commit.clone().unwrap_or_else(none);
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(none);
    let mut found: Vec<String> = [
        (
            "millstream",
            run_a.millstream.clone(),
            run_b.millstream.clone(),
        ),
        ("commit", commit(run_a), commit(run_b)),
        ("size", run_a.size.clone(), run_b.size.clone()),
        (
            "overrides",
            run_a.overrides.join(" "),
            run_b.overrides.join(" "),
        ),
        ("host", here.host.clone(), there.host.clone()),
        ("kernel", here.kernel.clone(), there.kernel.clone()),
        (
            "distribution",
            here.distribution.clone(),
            there.distribution.clone(),
        ),
        ("CPU", here.cpu.clone(), there.cpu.clone()),
        ("cores", here.cores.to_string(), there.cores.to_string()),
        (
            "memory",
            here.memory_bytes.to_string(),
            there.memory_bytes.to_string(),
        ),
        ("nodes", here.nodes.to_string(), there.nodes.to_string()),
        (
            "hypervisor",
            here.hypervisor.clone(),
            there.hypervisor.clone(),
        ),
        (
            "governor",
            optional(&here.governor),
            optional(&there.governor),
        ),
        (
            "clocksource",
            optional(&here.clocksource),
            optional(&there.clocksource),
        ),
        (
            "transparent huge pages",
            optional(&here.transparent_hugepage),
            optional(&there.transparent_hugepage),
        ),
        (
            "congestion control",
            optional(&here.congestion_control),
            optional(&there.congestion_control),
        ),
        (
            "mitigations",
            here.mitigations.join(", "),
            there.mitigations.join(", "),
        ),
        (
            "open files",
            here.open_files_max.to_string(),
            there.open_files_max.to_string(),
        ),
        (
            "interfaces",
            here.interfaces.join(", "),
            there.interfaces.join(", "),
        ),
    ]
    .into_iter()
    .filter(|(_, a, b)| a != b)
    .map(|(what, a, b)| told(what, &a, &b))
    .collect();
    let tools: std::collections::BTreeSet<&String> =
        here.versions.keys().chain(there.versions.keys()).collect();
    for tool in tools {
        let version =
            |of: &crate::record::Environment| of.versions.get(tool).cloned().unwrap_or_else(none);
        let (a, b) = (version(here), version(there));
        if a != b {
            found.push(told(tool, &a, &b));
        }
    }
    found.extend(of_tables(
        "topology",
        &a.recipe.topology,
        &b.recipe.topology,
    ));
    found.extend(of_tables("system", &a.recipe.system, &b.recipe.system));
    found.extend(of_tuning(a, b));
    found
}

/// Keys that held while one run measured and not, or otherwise, in the other.
fn of_tuning(a: &Kept, b: &Kept) -> Vec<String> {
    let keys = |kept: &Kept| -> std::collections::BTreeMap<String, String> {
        let tuned = kept.trials.iter().flat_map(|trial| &trial.tuned);
        tuned
            .map(|key| {
                let value = key.problem.clone().unwrap_or_else(|| key.wanted.clone());
                (key.key.clone(), value)
            })
            .collect()
    };
    let (left, right) = (keys(a), keys(b));
    let all: std::collections::BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    all.into_iter()
        .filter(|key| left.get(*key) != right.get(*key))
        .map(|key| {
            let of = |keys: &std::collections::BTreeMap<String, String>| {
                keys.get(key)
                    .cloned()
                    .unwrap_or_else(|| String::from("left alone"))
            };
            told(key, &of(&left), &of(&right))
        })
        .collect()
}

/// Keys of two tables whose values differ, at any depth.
fn of_tables(name: &str, a: &toml::Table, b: &toml::Table) -> Vec<String> {
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    keys.into_iter()
        .flat_map(|key| {
            let place = format!("{name}.{key}");
            match (a.get(key), b.get(key)) {
                (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => {
                    of_tables(&place, a, b)
                }
                (a, b) if a == b => Vec::new(),
                (a, b) => {
                    let of = |value: Option<&toml::Value>| value.map_or_else(none, short);
                    vec![told(&place, &of(a), &of(b))]
                }
            }
        })
        .collect()
}

/// A value on one line; of whole configurations only the fact that they differ.
fn short(value: &toml::Value) -> String {
    let text = value.to_string();
    if text.len() > VALUE_MAX || text.contains('\n') {
        format!("{} bytes of text", text.len())
    } else {
        text
    }
}

fn told(what: &str, a: &str, b: &str) -> String {
    let word = |text: &str| {
        if text.is_empty() {
            none()
        } else {
            String::from(text)
        }
    };
    format!("{what}: A {}, B {}", word(a), word(b))
}

fn none() -> String {
    String::from("none")
}

/// Bytes of a value that still reads as one.
const VALUE_MAX: usize = 120;
