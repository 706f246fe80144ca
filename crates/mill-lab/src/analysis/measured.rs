//! The trials of a run, found by their point.

use super::{Kept, KeptFile};
use crate::limit::Side;
use crate::recipe::{Axis, Recipe, matches, value_names};
use crate::record::{Point, Status, TrialRecord};
use crate::statistics::median;
use std::collections::{BTreeMap, BTreeSet};

/// Which points: values by axis, as `at` of a recipe.
pub(super) type Filter = BTreeMap<String, toml::Value>;

/// A run with its trials in order.
#[derive(Debug)]
pub(super) struct Measured<'a> {
    pub(super) kept: &'a Kept,
    pub(super) recipe: &'a Recipe,
    /// In the recipe's order; values that only trials have come last.
    pub(super) axes: Vec<Axis>,
    /// The last attempt at each trial of the plan.
    pub(super) trials: Vec<&'a TrialRecord>,
    /// Points in the order of the axes, the last changing fastest.
    pub(super) points: Vec<&'a Point>,
    /// Points, and whether of the first system's second runs, that have an undisturbed trial.
    quiet: BTreeSet<(bool, &'a Point)>,
}

/// Two trials of one block, at points that differ in nothing but what is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    pub(super) from: &'a TrialRecord,
    pub(super) to: &'a TrialRecord,
}

impl Pair<'_> {
    /// Whether others took CPU time from either.
    pub(super) fn is_disturbed(&self) -> bool {
        is_disturbed(self.from) || is_disturbed(self.to)
    }

    pub(super) fn figures(&self, metric: &str) -> Option<(f64, f64)> {
        Some((figure(self.from, metric)?, figure(self.to, metric)?))
    }
}

impl<'a> Measured<'a> {
    pub(super) fn of(kept: &'a Kept) -> Self {
        let mut last: BTreeMap<usize, &TrialRecord> = BTreeMap::new();
        for trial in &kept.trials {
            let known = last.entry(trial.number).or_insert(trial);
            if trial.attempt >= known.attempt {
                *known = trial;
            }
        }
        let trials: Vec<&TrialRecord> = last.into_values().collect();
        let axes = axes(&kept.recipe, &trials);
        let distinct: BTreeSet<&Point> = trials.iter().map(|trial| &trial.point).collect();
        let mut points: Vec<&Point> = distinct.into_iter().collect();
        points.sort_by_cached_key(|point| {
            axes.iter()
                .map(|axis| place(axis, point))
                .collect::<Vec<usize>>()
        });
        let quiet = trials
            .iter()
            .filter(|trial| trial.status == Status::Measured)
            .map(|trial| (trial.again, &trial.point))
            .collect();
        Self {
            kept,
            recipe: &kept.recipe,
            axes,
            trials,
            points,
            quiet,
        }
    }

    /// Whether figures may rest on a trial: undisturbed ones always, disturbed ones where their point has no other.
    pub(super) fn counts(&self, trial: &TrialRecord) -> bool {
        match trial.status {
            Status::Measured => true,
            Status::Disturbed { .. } => !self.quiet.contains(&(trial.again, &trial.point)),
            Status::Absent { .. } | Status::Failed { .. } => false,
        }
    }

    /// All trials of matching points, with any status; not the first system's second runs.
    pub(super) fn at(&self, filter: &Filter) -> Vec<&'a TrialRecord> {
        let fits = |trial: &&&TrialRecord| !trial.again && matches(&trial.point, filter);
        self.trials.iter().filter(fits).copied().collect()
    }

    /// Those that count.
    pub(super) fn usable(&self, filter: &Filter) -> Vec<&'a TrialRecord> {
        let mut trials = self.at(filter);
        trials.retain(|trial| self.counts(trial));
        trials
    }

    pub(super) fn values(&self, filter: &Filter, metric: &str) -> Vec<f64> {
        let trials = self.usable(filter);
        trials
            .iter()
            .filter_map(|trial| figure(trial, metric))
            .collect()
    }

    /// Trials of one block whose points differ in nothing but what the filters change, both with the figure: undisturbed ones if an
    /// interval can be had of them, or if there are no others; else the disturbed ones besides.
    pub(super) fn pairs(&self, from: &Filter, to: &Filter, metric: &str) -> Vec<Pair<'a>> {
        let changed: BTreeSet<&String> = from
            .keys()
            .chain(to.keys())
            .filter(|axis| names(from, axis) != names(to, axis))
            .collect();
        let rest = |trial: &TrialRecord| {
            let mut point = trial.point.clone();
            point.retain(|axis, _| !changed.contains(axis));
            (trial.block, point)
        };
        let has_figure = |trial: &&TrialRecord| {
            let ran = trial.status == Status::Measured || is_disturbed(trial);
            ran && figure(trial, metric).is_some()
        };
        let partners: BTreeMap<(u32, Point), &'a TrialRecord> = self
            .at(to)
            .into_iter()
            .filter(has_figure)
            .map(|trial| (rest(trial), trial))
            .collect();
        let all: Vec<Pair<'a>> = self
            .at(from)
            .into_iter()
            .filter(has_figure)
            .filter_map(|trial| {
                let to = partners.get(&rest(trial)).copied()?;
                Some(Pair { from: trial, to })
            })
            .collect();
        let quiet: Vec<Pair<'a>> = all
            .iter()
            .filter(|pair| !pair.is_disturbed())
            .copied()
            .collect();
        if quiet.len() < PAIRS_MIN { all } else { quiet }
    }

    /// The limit of most of the trials that count; none if it is unknown.
    pub(super) fn limit(&self, filter: &Filter) -> Option<Side> {
        most_voted(&self.usable(filter))
    }

    /// The trial whose figure is nearest to the median of those that count.
    pub(super) fn middle(&self, filter: &Filter, metric: &str) -> Option<&'a TrialRecord> {
        let trials = self.usable(filter);
        let Some(median) = median(&self.values(filter, metric)) else {
            return trials.first().copied();
        };
        trials.into_iter().min_by(|a, b| {
            let distance =
                |trial| figure(trial, metric).map_or(f64::INFINITY, |v| (v - median).abs());
            distance(a).total_cmp(&distance(b))
        })
    }

    pub(super) fn file(&self, trial: &TrialRecord, name: &str) -> Option<&'a KeptFile> {
        let fits = |file: &&KeptFile| file.trial == trial.number && file.name == name;
        self.kept.files.iter().find(fits)
    }

    pub(super) fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    /// Names of an axis' values that some point under the filter has, in order.
    pub(super) fn names_at(&self, axis: &str, filter: &Filter) -> Vec<String> {
        let Some(axis) = self.axis(axis) else {
            return Vec::new();
        };
        let present = |name: &String| {
            let mut points = self.points.iter().copied();
            points.any(|point| point.get(&axis.name) == Some(name) && matches(point, filter))
        };
        axis.values
            .iter()
            .map(|value| value.name.clone())
            .filter(present)
            .collect()
    }

    /// Each combination of these axes' values that some point under the filter has; one empty filter for no axes.
    pub(super) fn combinations(&self, axes: &[String], filter: &Filter) -> Vec<Filter> {
        let mut found: Vec<Filter> = Vec::new();
        for point in self.points.iter().filter(|point| matches(point, filter)) {
            let part: Filter = axes
                .iter()
                .filter_map(|axis| Some((axis.clone(), named(point.get(axis)?))))
                .collect();
            if part.len() == axes.len() && !found.contains(&part) {
                found.push(part);
            }
        }
        // In the order of `axes`, not of the recipe.
        found.sort_by_cached_key(|part| {
            let point: Point = as_point(part);
            axes.iter()
                .map(|name| self.axis(name).map_or(0, |axis| place(axis, &point)))
                .collect::<Vec<usize>>()
        });
        found
    }

    /// The title of a system, the name of any other value.
    pub(super) fn title(&self, axis: &str, name: &str) -> String {
        let title = self.recipe.system.get(name).filter(|_| axis == "system");
        let title = title.and_then(|system| system.get("title")?.as_str());
        match title {
            // A title that depends on the point is empty before it is filled in.
            Some(title) if !title.contains("${") => String::from(title),
            _ => String::from(name),
        }
    }

    /// "workers = 4, size = 1 kB"; systems by their titles.
    pub(super) fn told(&self, filter: &Filter) -> String {
        let part = |(axis, value): (&String, &toml::Value)| {
            let titles: Vec<String> = value_names(value)
                .iter()
                .map(|name| self.title(axis, name))
                .collect();
            let titles = titles.join(" or ");
            if axis == "system" {
                titles
            } else {
                format!("{axis} = {titles}")
            }
        };
        // As the recipe orders its axes.
        let mut parts: Vec<(&String, &toml::Value)> = filter.iter().collect();
        parts.sort_by_key(|(name, _)| self.axes.iter().position(|axis| axis.name == **name));
        parts.into_iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// A value of an axis as a number: its name, else the one number among its variables; none if it has none.
    pub(super) fn number(&self, axis: &str, name: &str) -> Option<f64> {
        if let Ok(number) = name.parse() {
            return Some(number);
        }
        let value = self
            .axis(axis)?
            .values
            .iter()
            .find(|value| value.name == name)?;
        let mut numbers = value.vars.values().filter_map(as_number);
        match (numbers.next(), numbers.next()) {
            (Some(number), None) => Some(number),
            _ => None,
        }
    }

    /// Axes with more than one value among the points.
    pub(super) fn moving_axes(&self) -> Vec<&Axis> {
        let moves = |axis: &&Axis| self.names_at(&axis.name, &Filter::new()).len() > 1;
        self.axes.iter().filter(moves).collect()
    }

    /// Their names.
    pub(super) fn moving_names(&self) -> Vec<String> {
        let axes = self.moving_axes().into_iter();
        axes.map(|axis| axis.name.clone()).collect()
    }
}

/// The limit that most of these trials had. A tie is the later one of `Side`: never the server where as many say otherwise.
pub(super) fn most_voted(trials: &[&TrialRecord]) -> Option<Side> {
    let mut votes: BTreeMap<Side, usize> = BTreeMap::new();
    for limit in trials.iter().filter_map(|trial| trial.limit.as_ref()) {
        *votes.entry(limit.side).or_default() += 1;
    }
    votes
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map(|(side, _)| side)
}

/// Whether others took more CPU time than the recipe allows.
pub(super) fn is_disturbed(trial: &TrialRecord) -> bool {
    matches!(trial.status, Status::Disturbed { .. })
}

/// Pairs from which there is an interval.
const PAIRS_MIN: usize = 3;

/// A measured figure, if it is a number.
pub(super) fn figure(trial: &TrialRecord, metric: &str) -> Option<f64> {
    trial
        .figures
        .get(metric)
        .copied()
        .filter(|value| value.is_finite())
}

/// The names of a filter's value; none if the axis is free.
fn names(filter: &Filter, axis: &str) -> Vec<String> {
    filter.get(axis).map(value_names).unwrap_or_default()
}

/// One value as a filter has it.
pub(super) fn named(name: &str) -> toml::Value {
    toml::Value::String(String::from(name))
}

/// Laid over each other, the later ones win.
pub(super) fn over(filters: &[&Filter]) -> Filter {
    let mut all = Filter::new();
    for filter in filters {
        all.extend(
            filter
                .iter()
                .map(|(axis, value)| (axis.clone(), value.clone())),
        );
    }
    all
}

/// The point of a filter with one value for each axis.
pub(super) fn as_point(filter: &Filter) -> Point {
    let one = |(axis, value): (&String, &toml::Value)| {
        Some((axis.clone(), value_names(value).into_iter().next()?))
    };
    filter.iter().filter_map(one).collect()
}

fn as_number(value: &toml::Value) -> Option<f64> {
    value.as_float().or_else(|| {
        value
            .as_integer()
            .and_then(|whole| whole.to_string().parse().ok())
    })
}

/// The place of a point's value on an axis; unknown ones last.
fn place(axis: &Axis, point: &Point) -> usize {
    let name = point.get(&axis.name);
    let found = axis
        .values
        .iter()
        .position(|value| Some(&value.name) == name);
    found.unwrap_or(axis.values.len())
}

/// The recipe's axes, and what trials have besides: records may be older than the recipe's form.
fn axes(recipe: &Recipe, trials: &[&TrialRecord]) -> Vec<Axis> {
    let mut axes = recipe.axes();
    for trial in trials {
        for (name, value) in &trial.point {
            let index = axes
                .iter()
                .position(|axis| axis.name == *name)
                .unwrap_or_else(|| {
                    axes.push(Axis {
                        name: name.clone(),
                        values: Vec::new(),
                    });
                    axes.len() - 1
                });
            if !axes[index].values.iter().any(|known| known.name == *value) {
                axes[index].values.push(crate::recipe::AxisValue {
                    name: value.clone(),
                    vars: toml::Table::new(),
                });
            }
        }
    }
    axes
}
