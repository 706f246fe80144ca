//! Mistakes in a recipe that parses: unknown names of axes, values, systems and metrics, comparisons that change two
//! things at once, setups that cannot be made. All of them, not only the first.

mod compare;
mod layout;
mod systems;

use super::inherit::{self, Document};
use super::source::KeyPath;
use super::{RecipeError, Repeat, Resolved, finish, size, value_names};
use crate::metric;
use mill_config::suggest::nearest;
use std::collections::BTreeMap;

/// Everything that is wrong with a recipe at the size at which it was resolved. Values of axes that only another size
/// has are known.
pub fn check(resolved: &Resolved) -> Vec<RecipeError> {
    let mut check = Check {
        resolved,
        errors: Vec::new(),
    };
    check.repeat();
    check.skips();
    check.systems();
    check.comparisons();
    check.targets();
    check.tables();
    check.charts();
    check.published();
    check.setups();
    in_order(check.errors)
}

/// Everything that is wrong with a recipe, by id or path, at all its sizes.
pub fn check_all(name: &str) -> Vec<RecipeError> {
    let read = Document::named(name).and_then(|document| {
        let source = inherit::read(&document)?;
        Ok((document, size::names(&source)))
    });
    let (document, sizes) = match read {
        Ok(read) => read,
        Err(error) => return vec![error],
    };
    let mut errors = Vec::new();
    for size in sizes {
        match finish(&document, &size, &[]) {
            Ok(resolved) => errors.extend(check(&resolved)),
            Err(more) => errors.extend(more),
        }
    }
    in_order(errors)
}

/// The entries of the files, each once.
fn in_order(mut errors: Vec<RecipeError>) -> Vec<RecipeError> {
    let number = |word: Option<&str>| {
        word.and_then(|word| word.parse::<usize>().ok())
            .unwrap_or(0)
    };
    errors.sort_by_cached_key(|error| {
        let mut words = error.place.rsplitn(3, ':');
        let column = number(words.next());
        let line = number(words.next());
        let file = words.next().map(String::from);
        (file, line, column, error.problem.clone())
    });
    errors.dedup();
    errors
}

struct Check<'a> {
    resolved: &'a Resolved,
    errors: Vec<RecipeError>,
}

impl Check<'_> {
    fn fail(&mut self, path: &[&str], problem: impl Into<String>) {
        self.errors.push(self.resolved.error(path, problem));
    }

    fn further_blocks(&mut self, repeat: &Repeat) {
        let goes_on = repeat.half_width.is_some() || repeat.until_decided;
        if goes_on && repeat.blocks_max < repeat.blocks {
            let problem = format!(
                "`blocks_max` is {}, fewer than the {} blocks there are anyway",
                repeat.blocks_max, repeat.blocks
            );
            self.fail(&["repeat", "blocks_max"], problem);
        }
        let targets = &self.resolved.recipe.target;
        if repeat.until_decided && targets.iter().all(|target| target.over.is_none()) {
            let problem = "`until_decided` is for targets with `over`, and there is none";
            self.fail(&["repeat", "until_decided"], problem);
        }
    }

    fn repeat(&mut self) {
        let repeat = self.resolved.recipe.repeat.clone();
        if repeat.blocks == 0 {
            self.fail(&["repeat", "blocks"], "there has to be at least one block");
        }
        let is_share = |width: f64| width > 0.0 && width < 1.0;
        if repeat.half_width.is_some_and(|width| !is_share(width)) {
            let problem = "`half_width` is a share: 0.02 is 2 %";
            self.fail(&["repeat", "half_width"], problem);
        }
        self.further_blocks(&repeat);
        let shares = [
            ("foreign_cpu", repeat.foreign_cpu),
            ("steal", repeat.steal),
            ("threshold", repeat.threshold),
        ];
        for (key, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                self.fail(&["repeat", key], format!("`{key}` is a share from 0 to 1"));
            }
        }
    }

    fn skips(&mut self) {
        for (index, skip) in self.resolved.recipe.skip.iter().enumerate() {
            let index = index.to_string();
            if skip.is_empty() {
                self.fail(
                    &["skip", &index],
                    "an empty entry would leave out every point",
                );
            }
            self.at(&["skip", &index], skip);
        }
        if self.resolved.points().is_empty() {
            self.fail(&["skip"], "no point is left: `skip` leaves all of them out");
        }
    }

    fn setups(&mut self) {
        for point in self.resolved.points() {
            match self.resolved.setup_all(&point) {
                Ok((setup, upstreams)) => self.setup(&setup, &upstreams),
                Err(errors) => self.errors.extend(errors),
            }
        }
    }

    /// Axes and values that are named somewhere.
    fn at(&mut self, path: &[&str], at: &BTreeMap<String, toml::Value>) {
        for (axis, value) in at {
            let path = [path, &[axis.as_str()]].concat();
            if self.axis(&path, axis) {
                for name in value_names(value) {
                    self.value(&path, axis, &name);
                }
            }
        }
    }

    fn axis(&mut self, path: &[&str], name: &str) -> bool {
        let known: Vec<&str> = self.resolved.known.keys().map(String::as_str).collect();
        if known.contains(&name) {
            return true;
        }
        let problem = unknown("axis", name, &known);
        self.fail(path, problem);
        false
    }

    /// Of an axis that there is.
    fn value(&mut self, path: &[&str], axis: &str, name: &str) -> bool {
        let known = self.resolved.known.get(axis);
        let known: Vec<&str> = known.into_iter().flatten().map(String::as_str).collect();
        if known.contains(&name) {
            return true;
        }
        let problem = format!("on the axis `{axis}`: {}", unknown("value", name, &known));
        self.fail(path, problem);
        false
    }

    fn metric(&mut self, path: &[&str], name: &str) {
        if !metric::is_known(name) {
            let stem = name.split('.').next().unwrap_or(name);
            let advice = match nearest(stem.as_bytes(), metric::stems()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => String::from("; `millstream lab show` of any recipe names some"),
            };
            self.fail(path, format!("there is no metric `{name}`{advice}"));
        }
    }
}

/// Numbers are not misspelt: for them the message lists all existing ones.
fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let words = known
        .iter()
        .copied()
        .filter(|_| name.parse::<f64>().is_err());
    match nearest(name.as_bytes(), words) {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!(
            "there is no {what} `{name}`; there are: {}",
            known.join(", ")
        ),
    }
}

/// The path of an item of a list below a key.
fn item(path: &[&str], index: usize) -> KeyPath {
    let mut path: KeyPath = path.iter().copied().map(String::from).collect();
    path.push(index.to_string());
    path
}

#[cfg(test)]
mod tests;
