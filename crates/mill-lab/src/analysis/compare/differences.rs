//! What differs between two runs besides their figures.

use super::super::Kept;
use crate::recipe::Recipe;
use crate::record::Environment;
use std::collections::{BTreeMap, BTreeSet};

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
    let mut found: Vec<String> = surroundings(a)
        .into_iter()
        .zip(surroundings(b))
        .filter(|(a, b)| a != b)
        .map(|((what, a), (_, b))| told(what, &a, &b))
        .collect();
    let (here, there) = (&a.environment, &b.environment);
    let tools: BTreeSet<&String> = here.versions.keys().chain(there.versions.keys()).collect();
    for tool in tools {
        let version = |of: &Environment| of.versions.get(tool).cloned().unwrap_or_else(none);
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

fn surroundings(kept: &Kept) -> [(&'static str, String); 19] {
    let (run, machine) = (&kept.run, &kept.environment);
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(none);
    let huge_pages = optional(&machine.transparent_hugepage);
    [
        ("millstream", run.millstream.clone()),
        ("commit", optional(&run.commit)),
        ("size", run.size.clone()),
        ("overrides", run.overrides.join(" ")),
        ("host", machine.host.clone()),
        ("kernel", machine.kernel.clone()),
        ("distribution", machine.distribution.clone()),
        ("CPU", machine.cpu.clone()),
        ("cores", machine.cores.to_string()),
        ("memory", machine.memory_bytes.to_string()),
        ("nodes", machine.nodes.to_string()),
        ("hypervisor", machine.hypervisor.clone()),
        ("governor", optional(&machine.governor)),
        ("clocksource", optional(&machine.clocksource)),
        ("transparent huge pages", huge_pages),
        ("congestion control", optional(&machine.congestion_control)),
        ("mitigations", machine.mitigations.join(", ")),
        ("open files", machine.open_files_max.to_string()),
        ("interfaces", machine.interfaces.join(", ")),
    ]
}

/// Keys that held while one run measured and not, or otherwise, in the other.
fn of_tuning(a: &Kept, b: &Kept) -> Vec<String> {
    let keys = |kept: &Kept| -> BTreeMap<String, String> {
        let tuned = kept.trials.iter().flat_map(|trial| &trial.tuned);
        tuned
            .map(|key| {
                let value = key.problem.clone().unwrap_or_else(|| key.wanted.clone());
                (key.key.clone(), value)
            })
            .collect()
    };
    let (left, right) = (keys(a), keys(b));
    let all: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    all.into_iter()
        .filter(|key| left.get(*key) != right.get(*key))
        .map(|key| {
            let of = |keys: &BTreeMap<String, String>| {
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
    let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
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
