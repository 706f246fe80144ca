//! One point of a recipe as the setup of its trials.

use super::source::KeyPath;
use super::substitute::{Trace, Variables};
use super::{RecipeError, Resolved, Setup, System, first, matches, typed};
use crate::record::Point;
use mill_config::suggest::nearest;
use std::collections::BTreeSet;

/// The parts of a recipe that a trial needs, besides its system.
const SECTIONS: [&str; 6] = ["topology", "tune", "content", "load", "monitors", "probe"];

impl Resolved {
    /// What a trial at this point needs; with the systems that run behind the one under test, nearest first.
    pub fn setup(&self, point: &Point) -> Result<(Setup, Vec<System>), RecipeError> {
        first(self.setup_all(point))
    }

    /// The same, with all that is wrong.
    pub(super) fn setup_all(
        &self,
        point: &Point,
    ) -> Result<(Setup, Vec<System>), Vec<RecipeError>> {
        let variables = self.variables(point)?;
        let name = self.system_name(point)?;
        let mut errors = Vec::new();
        let mut keep = |errors_of: Vec<RecipeError>| errors.extend(errors_of);
        let mut setup = self.setup_of(&name, &variables).map_err(&mut keep).ok();
        if let Some(setup) = &mut setup {
            setup.probe.retain(|probe| matches(point, &probe.points));
        }
        let mut upstreams = Vec::new();
        let mut around = vec![name];
        let mut next = setup
            .as_ref()
            .and_then(|setup| setup.system.upstream.clone());
        while let Some(name) = next.take() {
            let upstream = self.upstream(&name, &mut around, &variables);
            if let Ok(system) = upstream.map_err(&mut keep) {
                next = system.upstream.clone();
                upstreams.push(system);
            }
        }
        match setup {
            Some(setup) if errors.is_empty() => Ok((setup, upstreams)),
            _ => Err(errors),
        }
    }

    /// Variables that hold at a point: `[vars]`, and what the axes' values bring, which wins.
    fn variables(&self, point: &Point) -> Result<Variables, Vec<RecipeError>> {
        let mut variables = Variables::default();
        let mut extend = |table: toml::Table| variables.0.extend(table);
        extend(self.recipe.vars.clone());
        for axis in self.axes() {
            let wanted = point.get(&axis.name);
            let value = axis
                .values
                .into_iter()
                .find(|value| Some(&value.name) == wanted);
            let Some(value) = value else {
                let problem = format!(
                    "the point {point:?} has no value on the axis `{}`",
                    axis.name
                );
                return Err(vec![self.error(&["for", &axis.name], problem)]);
            };
            extend(value.vars);
        }
        Ok(variables)
    }

    fn system_name(&self, point: &Point) -> Result<String, Vec<RecipeError>> {
        let name = point.get("system").cloned().unwrap_or_default();
        if self.recipe.system.contains_key(&name) {
            return Ok(name);
        }
        let systems = self.recipe.system.keys().map(String::as_str);
        let problem = match nearest(name.as_bytes(), systems) {
            Some(near) => format!("there is no system `{name}`; did you mean `{near}`?"),
            None => format!("there is no `[system.{name}]`"),
        };
        Err(vec![self.error(&["for", "system"], problem)])
    }

    fn setup_of(&self, name: &str, variables: &Variables) -> Result<Setup, Vec<RecipeError>> {
        let mut trace = Trace::default();
        let mut table = toml::Table::new();
        for section in SECTIONS {
            if let Some(value) = self.table.get(section) {
                let path = [String::from(section)];
                let value = variables.replace(value, &path, &mut trace);
                table.insert(String::from(section), value);
            }
        }
        let system = self.system_table(name, variables, &mut trace);
        table.insert(String::from("system"), toml::Value::Table(system));
        let mut setup: Setup = self.typed(table, name, &trace)?;
        setup
            .probe
            .retain(|probe| probe.systems.is_empty() || probe.systems.iter().any(|of| of == name));
        Ok(setup)
    }

    fn upstream(
        &self,
        name: &str,
        around: &mut Vec<String>,
        variables: &Variables,
    ) -> Result<System, Vec<RecipeError>> {
        let before = around.last().cloned().unwrap_or_default();
        let fail = |problem| Err(vec![self.error(&["system", &before, "upstream"], problem)]);
        if around.iter().any(|other| other == name) {
            let circle = format!("{} -> {name}", around.join(" -> "));
            return fail(format!("upstreams go round in a circle: {circle}"));
        }
        if !self.recipe.system.contains_key(name) {
            let systems = self.recipe.system.keys().map(String::as_str);
            return fail(match nearest(name.as_bytes(), systems) {
                Some(near) => format!("there is no system `{name}`; did you mean `{near}`?"),
                None => format!("there is no `[system.{name}]`"),
            });
        }
        around.push(String::from(name));
        let mut trace = Trace::default();
        let table = self.system_table(name, variables, &mut trace);
        let whole = toml::Table::from_iter([(String::from("system"), toml::Value::Table(table))]);
        let Behind { system } = self.typed(whole, name, &trace)?;
        Ok(system)
    }

    /// `[system.NAME]` with its name in it, variables replaced. Paths in the trace begin with `system`, without NAME.
    fn system_table(&self, name: &str, variables: &Variables, trace: &mut Trace) -> toml::Table {
        let empty = || toml::Value::Table(toml::Table::new());
        let written = self.recipe.system.get(name).cloned().unwrap_or_else(empty);
        let replaced = variables.replace(&written, &[String::from("system")], trace);
        let mut table = match replaced {
            toml::Value::Table(table) => table,
            _ => toml::Table::new(),
        };
        table.insert(
            String::from("name"),
            toml::Value::String(String::from(name)),
        );
        table
    }

    /// A table as a type; places in `system` are those of `[system.NAME]`.
    fn typed<T: serde::de::DeserializeOwned>(
        &self,
        table: toml::Table,
        name: &str,
        trace: &Trace,
    ) -> Result<T, Vec<RecipeError>> {
        let at = |path: &[String]| {
            let written = written(path, name, trace);
            let place = self.places.of(&written);
            (written, place)
        };
        let mut errors: Vec<RecipeError> = trace
            .problems
            .iter()
            .map(|(path, problem)| {
                // Problems of substitution are reported at keys as they are written.
                let (written, place) = at(path);
                let problem = format!("`{}`: {problem}", written.join("."));
                RecipeError { place, problem }
            })
            .collect();
        match typed::read::<T>(table, &trace.whole, at) {
            Ok(typed) if errors.is_empty() => Ok(typed),
            Ok(_) => Err(errors),
            // A text with `${…}` left in it is often of the wrong type besides: the first reason is enough.
            Err(more) => {
                let known: BTreeSet<String> =
                    errors.iter().map(|error| error.place.clone()).collect();
                errors.extend(
                    more.into_iter()
                        .filter(|error| !known.contains(&error.place)),
                );
                Err(errors)
            }
        }
    }

    /// An error at a key of this recipe.
    pub(super) fn error(&self, path: &[&str], problem: impl Into<String>) -> RecipeError {
        let path: KeyPath = path.iter().copied().map(String::from).collect();
        RecipeError {
            place: self.places.of(&path),
            problem: problem.into(),
        }
    }
}

/// A system behind another, as serde reads it.
#[derive(serde::Deserialize)]
struct Behind {
    system: System,
}

/// The path of a key as the recipe has it.
fn written(path: &[String], name: &str, trace: &Trace) -> KeyPath {
    let known = (0..=path.len()).rev().find_map(|len| {
        let (head, rest) = path.split_at_checked(len)?;
        let head = trace.renamed.get(head)?;
        Some([head.as_slice(), rest].concat())
    });
    let mut path = known.unwrap_or_else(|| path.to_vec());
    if path.first().map(String::as_str) == Some("system") {
        path.insert(1, String::from(name));
    }
    path
}
