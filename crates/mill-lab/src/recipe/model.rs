//! What holds for a whole run: the axes, how often, what is compared, which tables and charts come out, and what the
//! document published.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A recipe at one size, all inheritance done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The file's name without `.toml`; the argument of `lab run`.
    #[serde(default)]
    pub id: String,
    pub title: String,
    /// The document it comes from: `000` … `004`.
    pub seed: Option<String>,
    /// Rows of the catalogue: `N1`, `N2`.
    #[serde(default)]
    pub rows: Vec<String>,
    /// What it finds out, as a question.
    pub question: String,
    /// What to know when reading the report; one sentence each.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What cannot exist on machines like this, and what replaces it.
    #[serde(default)]
    pub absent: Vec<Absence>,
    /// Variables for `${…}` that are no axes: durations, connections.
    #[serde(default)]
    pub vars: toml::Table,
    /// `[for]`: the axes, outermost first. `system` is one too; by default all of `[system]`, in order.
    #[serde(default, rename = "for")]
    pub axes: toml::Table,
    /// Points to leave out: a point that has all the values of one entry.
    #[serde(default)]
    pub skip: Vec<BTreeMap<String, toml::Value>>,
    #[serde(default)]
    pub repeat: Repeat,
    #[serde(default)]
    pub compare: Vec<Comparison>,
    #[serde(default)]
    pub target: Vec<Target>,
    #[serde(default)]
    pub table: Vec<Table>,
    #[serde(default)]
    pub chart: Vec<Chart>,
    #[serde(default)]
    pub published: Vec<Published>,
    /// `[system]` as written, before substitution: the order of the systems, their titles and factors.
    #[serde(default)]
    pub system: toml::Table,
    /// `[topology]`, `[content]` and `[load]` as written: what two runs must share to be compared.
    #[serde(default)]
    pub topology: toml::Table,
    #[serde(default)]
    pub content: toml::Table,
    #[serde(default)]
    pub load: toml::Table,
}

/// A part of the document's experiment that is missing here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absence {
    pub what: String,
    pub why: String,
    pub instead: String,
}

/// One axis of the cross product.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub name: String,
    pub values: Vec<AxisValue>,
}

/// In TOML a scalar, or a table with `name` and the variables that come with it.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    pub name: String,
    /// The scalar itself under the axis' name, or what the table holds.
    pub vars: toml::Table,
}

/// How often, and what disturbs a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Repeat {
    /// Each block has every point once.
    pub blocks: u32,
    pub order: Order,
    /// Go on after `blocks` until every comparison's interval is this narrow (half its width, as a share), at most `blocks_max`.
    pub half_width: Option<f64>,
    /// Go on after `blocks` until no target that is a ratio is open, with the points of open ones, at most `blocks_max`.
    pub until_decided: bool,
    pub blocks_max: u32,
    /// The first system runs twice in each block: the noise floor.
    pub again: bool,
    /// Of the order.
    pub seed: u64,
    /// A trial is disturbed when others took more than this share of the machine's CPU time.
    pub foreign_cpu: f64,
    /// … or when the hypervisor took this share.
    pub steal: f64,
    /// A disturbed trial is repeated this often, as long as the machine is quiet now and then.
    pub retries: u32,
    /// Comparisons are "no difference" inside this, or inside the noise floor if that is wider.
    pub threshold: f64,
}

/// Of the points of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Drawn from the seed, another one in each block.
    #[default]
    Shuffled,
    /// A B B A: there and back over the points of each value of the first axis, one value after the other, so that what is
    /// compared runs side by side.
    Alternating,
}

impl Default for Repeat {
    fn default() -> Self {
        Self {
            blocks: 5,
            order: Order::Shuffled,
            half_width: None,
            until_decided: false,
            blocks_max: 20,
            again: true,
            seed: 1,
            foreign_cpu: 0.05,
            steal: 0.05,
            retries: 2,
            threshold: 0.01,
        }
    }
}

/// A ratio: one factor changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The axis that is changed.
    #[serde(default = "system_axis")]
    pub axis: String,
    pub from: String,
    pub to: String,
    /// The name of the factor: "allocator", "server", "stack".
    pub factor: String,
    #[serde(default = "requests_per_s")]
    pub metrics: Vec<String>,
    /// Only at points with these values.
    #[serde(default)]
    pub at: BTreeMap<String, toml::Value>,
}

fn system_axis() -> String {
    String::from("system")
}
fn requests_per_s() -> Vec<String> {
    vec![String::from("requests_per_s")]
}

/// A limit for a figure, or for its ratio to the same figure elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub metric: String,
    /// Of points with these values.
    #[serde(default)]
    pub at: BTreeMap<String, toml::Value>,
    /// The ratio of `at` to `at` with these values is limited, not the figure.
    pub over: Option<BTreeMap<String, toml::Value>>,
    pub at_most: Option<f64>,
    pub at_least: Option<f64>,
}

/// A table in the document's layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// May contain `${axis}` of axes that are in `at`.
    pub title: String,
    /// Only of points with these values.
    #[serde(default)]
    pub at: BTreeMap<String, toml::Value>,
    /// One table for each value of these axes, besides.
    #[serde(default)]
    pub each: Vec<String>,
    pub rows: Rows,
    /// Heading of the first column.
    #[serde(default)]
    pub head: String,
    pub columns: Vec<Column>,
}

/// What the rows of a table are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rows {
    /// `rows.axis = "workers"`: one for each value.
    Axis(String),
    /// `rows.axes = ["processes", "connections"]`: one for each combination that is a point.
    Axes(Vec<String>),
    /// `rows.metrics = ["requests_per_s", …]`: one for each figure.
    Metrics(Vec<String>),
}

/// A column of a table. A cell is the median over the trials of the points that fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Column {
    pub title: String,
    /// Which points: `at.system = "nginx"`.
    pub at: BTreeMap<String, toml::Value>,
    /// Which figure, where the rows are points.
    pub metric: Option<String>,
    /// Gain in percent of `at` over these values instead: to/from - 1.
    pub over: Option<BTreeMap<String, toml::Value>>,
    /// "from A to B (delta)" of `over` and `at` instead.
    pub change: bool,
    /// Decimals.
    pub digits: Option<usize>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chart {
    pub title: String,
    pub kind: ChartKind,
    #[serde(default)]
    pub at: BTreeMap<String, toml::Value>,
    #[serde(default)]
    pub each: Vec<String>,
    /// scaling, lines: the axis along x.
    #[serde(default)]
    pub x: String,
    /// One line, bar or stack for each value of these axes.
    #[serde(default)]
    pub series: Vec<String>,
    #[serde(default = "requests_per_s_name")]
    pub metric: String,
}

fn requests_per_s_name() -> String {
    String::from("requests_per_s")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChartKind {
    /// With an ideal line and a fit of the universal scalability law.
    Scaling,
    Lines,
    /// Gains of the comparisons with their intervals.
    Gains,
    /// Latency over 1/(1-p), logarithmic.
    Percentiles,
    Cdf,
    /// usr, sys, soft, idle of each side's CPUs.
    Cpu,
    /// A monitor over time, with the ramps shaded.
    Time,
}

/// Figures that the document printed; shown as a ratio beside ours, never as measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// As the document calls the place: "Table 2".
    pub place: String,
    pub metric: String,
    /// As the document names the unit, if not the metric's own; a convention the lint can check ("Gb/s from MiB/s").
    pub unit: Option<String>,
    #[serde(default)]
    pub at: BTreeMap<String, toml::Value>,
    /// Axis of the lines, axis of the columns.
    pub lines: String,
    pub columns: String,
    /// A matrix in text: the first line names values of `columns`, each further line begins with a value of `lines`;
    /// `-` is a gap.
    pub figures: String,
    /// What is known to be wrong with it.
    pub defect: Option<String>,
}
