//! `[for]`: the axes of an experiment, and the points of their cross product.

use super::source::Source;
use super::{Axis, AxisValue, Recipe, RecipeError, Resolved};
use crate::record::Point;
use std::collections::BTreeMap;

impl Recipe {
    /// The axes in order, outermost first; `system` is among them.
    pub fn axes(&self) -> Vec<Axis> {
        axes_of(&self.axes)
    }
}

impl Resolved {
    /// The axes in order, `system` among them.
    pub fn axes(&self) -> Vec<Axis> {
        self.recipe.axes()
    }

    /// The cross product of the axes without what `skip` leaves out; the last axis changes fastest.
    pub fn points(&self) -> Vec<Point> {
        let mut points = vec![Point::new()];
        for axis in self.axes() {
            points = points
                .iter()
                .flat_map(|point| {
                    axis.values.iter().map(|value| {
                        let mut point = point.clone();
                        point.insert(axis.name.clone(), value.name.clone());
                        point
                    })
                })
                .collect();
        }
        points.retain(|point| !self.recipe.skip.iter().any(|at| matches(point, at)));
        points
    }
}

/// Whether a point has all these values. A list stands for any of its items; an axis that the point has not never
/// matches.
pub fn matches(point: &Point, at: &BTreeMap<String, toml::Value>) -> bool {
    at.iter().all(|(axis, wanted)| {
        let names = value_names(wanted);
        point.get(axis).is_some_and(|value| names.contains(value))
    })
}

/// The names in a value of `at` or `skip`: one, or those of a list.
pub fn value_names(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::Array(items) => items.iter().map(value_name).collect(),
        one => vec![value_name(one)],
    }
}

/// How a value of an axis is called: a table by its `name`, a scalar as it is written.
pub fn value_name(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Table(table) => table.get("name").map(value_name).unwrap_or_default(),
        other => other.to_string(),
    }
}

/// Fills `for.system` in where the recipe doesn't, and refuses axes that have no values or values without a name.
pub(super) fn complete(source: &mut Source) -> Result<(), RecipeError> {
    let systems: Vec<toml::Value> = match source.table.get("system") {
        Some(toml::Value::Table(systems)) => {
            systems.keys().cloned().map(toml::Value::String).collect()
        }
        Some(_) => return Err(source.error(&["system"], "systems are tables: `[system.nginx]`")),
        None => Vec::new(),
    };
    if systems.is_empty() {
        return Err(source.error(
            &[],
            "there is no system to measure; describe one in `[system.NAME]`",
        ));
    }
    let empty = || toml::Value::Table(toml::Table::new());
    let axes = source.table.entry("for").or_insert_with(empty);
    let Some(axes) = axes.as_table_mut() else {
        return Err(source.error(&["for"], "`[for]` is a table of axes with their values"));
    };
    axes.entry("system")
        .or_insert_with(|| toml::Value::Array(systems));
    match problems(source).into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// The names of all values that axes have at any size of a recipe.
pub(super) fn known(source: &Source) -> BTreeMap<String, Vec<String>> {
    let mut known = BTreeMap::new();
    add_names(&source.table, &mut known);
    let sizes = source.table.get("size").and_then(toml::Value::as_table);
    for size in sizes.into_iter().flat_map(toml::Table::values) {
        if let Some(size) = size.as_table() {
            add_names(size, &mut known);
        }
    }
    known
}

/// Adds the values of `[for]`, and all systems to those of the axis `system`.
pub(super) fn add_names(table: &toml::Table, known: &mut BTreeMap<String, Vec<String>>) {
    let table_of = |key: &str| table.get(key).and_then(toml::Value::as_table);
    let systems = table_of("system").into_iter().flat_map(toml::Table::keys);
    let mut names: Vec<(&str, String)> = systems.map(|name| ("system", name.clone())).collect();
    for (axis, values) in table_of("for").into_iter().flatten() {
        let values = values.as_array().into_iter().flatten();
        names.extend(values.map(|value| (axis.as_str(), value_name(value))));
    }
    for (axis, name) in names {
        let of_axis = known.entry(String::from(axis)).or_default();
        if !of_axis.contains(&name) {
            of_axis.push(name);
        }
    }
}

fn problems(source: &Source) -> Vec<RecipeError> {
    let Some(axes) = source.table.get("for").and_then(toml::Value::as_table) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for (axis, values) in axes {
        let Some(values) = values.as_array().filter(|values| !values.is_empty()) else {
            let problem = format!("the axis `{axis}` needs a list with at least one value");
            errors.push(source.error(&["for", axis], problem));
            continue;
        };
        let mut seen = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let index = index.to_string();
            let mut fail = |problem| errors.push(source.error(&["for", axis, &index], problem));
            let name = value_name(value);
            if value.is_array() || name.is_empty() {
                fail(format!(
                    "a value of the axis `{axis}` is a number, a word, or a table with `name`"
                ));
            } else if seen.contains(&name) {
                fail(format!("`{name}` stands in the axis `{axis}` twice"));
            }
            seen.push(name);
        }
    }
    errors
}

fn axes_of(table: &toml::Table) -> Vec<Axis> {
    let axes = table.iter().map(|(name, values)| Axis {
        name: name.clone(),
        values: values
            .as_array()
            .map(|values| values.iter().map(|value| axis_value(name, value)).collect())
            .unwrap_or_default(),
    });
    axes.collect()
}

/// A table brings its variables; the axis' own name is a variable too, of the value's name.
fn axis_value(axis: &str, value: &toml::Value) -> AxisValue {
    let name = value_name(value);
    let mut vars = toml::Table::new();
    match value {
        toml::Value::Table(table) => {
            vars.insert(String::from(axis), toml::Value::String(name.clone()));
            let brought = table.iter().filter(|(key, _)| *key != "name");
            vars.extend(brought.map(|(key, value)| (key.clone(), value.clone())));
        }
        scalar => {
            vars.insert(String::from(axis), scalar.clone());
        }
    }
    AxisValue { name, vars }
}
