//! Comparisons: a ratio has a meaning only where one factor changed.

use super::{Check, item};
use crate::recipe::Comparison;
use std::collections::{BTreeMap, BTreeSet};

impl Check<'_> {
    pub(super) fn comparisons(&mut self) {
        for (index, comparison) in self.resolved.recipe.compare.iter().enumerate() {
            let path = item(&["compare"], index);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            self.comparison(&path, comparison);
        }
    }

    pub(super) fn targets(&mut self) {
        for (index, target) in self.resolved.recipe.target.iter().enumerate() {
            let path = item(&["target"], index);
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            let key = |key| [path.as_slice(), &[key]].concat();
            self.metric(&key("metric"), &target.metric);
            self.at(&key("at"), &target.at);
            if let Some(over) = &target.over {
                self.at(&key("over"), over);
            }
            if target.at_most.is_none() && target.at_least.is_none() {
                self.fail(&path, "a target needs `at_most` or `at_least`");
            }
        }
    }

    fn comparison(&mut self, path: &[&str], comparison: &Comparison) {
        let key = |key| [path, &[key]].concat();
        let Comparison { axis, from, to, .. } = comparison;
        for (index, metric) in comparison.metrics.iter().enumerate() {
            let index = index.to_string();
            self.metric(&[key("metrics").as_slice(), &[&index]].concat(), metric);
        }
        self.at(&key("at"), &comparison.at);
        if comparison.at.contains_key(axis) {
            let problem = format!("`at` can't fix `{axis}`: it is the axis that is compared");
            self.fail(&key("at"), problem);
        }
        if !self.axis(&key("axis"), axis) {
            return;
        }
        let known =
            [("from", from), ("to", to)].map(|(end, name)| self.value(&key(end), axis, name));
        if from == to {
            self.fail(&key("to"), format!("`{from}` is compared with itself"));
        } else if axis == "system" && known == [true, true] {
            self.factors(path, comparison);
        }
    }

    /// Two systems differ in one factor, and it is the one that the comparison names.
    fn factors(&mut self, path: &[&str], comparison: &Comparison) {
        let Comparison {
            from, to, factor, ..
        } = comparison;
        let (before, after) = (self.factors_of(from), self.factors_of(to));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let changed: Vec<&str> = names
            .into_iter()
            .filter(|name| before.get(*name) != after.get(*name))
            .map(String::as_str)
            .collect();
        let problem = match changed.as_slice() {
            [] => format!(
                "`{from}` and `{to}` have the same `factors`; say in [system.{to}.factors] what is different"
            ),
            [one] if one == factor => match self.hidden(from, to, factor) {
                Some(problem) => problem,
                None => return,
            },
            [one] => format!("between `{from}` and `{to}` the {one} changes, not the {factor}"),
            several => format!(
                "{} factors change at once: {}; compare in {} steps",
                count(several.len()),
                several.join(", "),
                count(several.len())
            ),
        };
        self.fail(path, problem);
    }

    fn factors_of(&self, system: &str) -> BTreeMap<String, toml::Value> {
        let system = self.resolved.recipe.system.get(system);
        let factors = system.and_then(|system| system.get("factors"));
        let factors = factors.and_then(toml::Value::as_table);
        factors
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// A difference that `factors` keeps quiet about.
    fn hidden(&self, from: &str, to: &str, factor: &str) -> Option<String> {
        let part = |system: &str, key: &str| {
            let system = self.resolved.recipe.system.get(system)?;
            system.get(key).cloned()
        };
        let differ = |key: &str| part(from, key) != part(to, key);
        let name = |system: &str| {
            let allocator = part(system, "allocator");
            allocator.map_or_else(
                || String::from("glibc"),
                |value| crate::recipe::value_name(&value),
            )
        };
        if factor != "allocator" && name(from) != name(to) {
            return Some(format!(
                "the allocator changes too, from {} to {}; compare in two steps",
                name(from),
                name(to)
            ));
        }
        if factor != "stack" && differ("stack") {
            return Some(String::from(
                "the network stack changes too; compare in two steps",
            ));
        }
        let quiet = ["kind", "binary", "config", "args", "start"];
        let other = quiet
            .into_iter()
            .find(|key| factor == "allocator" && differ(key))?;
        Some(format!(
            "`{from}` and `{to}` differ in `{other}` too, and the allocator is said to be all that changes"
        ))
    }
}

fn count(number: usize) -> String {
    match number {
        2 => String::from("two"),
        3 => String::from("three"),
        more => more.to_string(),
    }
}
