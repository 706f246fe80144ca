//! Pictures as data.

mod curves;
mod gains;
mod latency;
mod processors;
mod stacks;
mod time;

use super::measured::{Filter, Measured, over};
use super::table::title;
use crate::findings::{Compared, Drawing, Picture, Scale};
use crate::metric::Unit;
use crate::recipe::{Chart, ChartKind};

pub(super) use stacks::flames;

/// Each chart of the recipe, once for each value of the axes in `each`; those that would be empty are left out.
pub(super) fn all(measured: &Measured<'_>, comparisons: &[Compared]) -> Vec<Picture> {
    let pictures = measured.recipe.chart.iter().flat_map(|chart| {
        let each = measured.combinations(&chart.each, &chart.at);
        each.into_iter()
            .filter_map(|each| picture(measured, comparisons, chart, &each))
            .collect::<Vec<_>>()
    });
    pictures.collect()
}

fn picture(
    measured: &Measured<'_>,
    comparisons: &[Compared],
    chart: &Chart,
    each: &Filter,
) -> Option<Picture> {
    let at = over(&[&chart.at, each]);
    let (drawing, caption) = match chart.kind {
        ChartKind::Scaling => curves::scaling(measured, chart, &at)?,
        ChartKind::Lines => curves::lines(measured, chart, &at)?,
        ChartKind::Gains => gains::bars(measured, comparisons, chart, &at)?,
        ChartKind::Percentiles => latency::percentiles(measured, chart, &at)?,
        ChartKind::Cdf => latency::cdf(measured, chart, &at)?,
        ChartKind::Cpu => processors::stacks(measured, chart, &at)?,
        ChartKind::Time => time::series(measured, chart, &at)?,
    };
    let title = title(measured, &chart.title, &at);
    Some(Picture {
        title,
        drawing,
        caption,
    })
}

/// What is drawn, and its caption; none if there is nothing.
type Drawn = Option<(Drawing, String)>;

/// The lines, bars or stacks of a chart: by the axes it names, by system if it names none.
fn series(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Vec<Filter> {
    let by_system = [String::from("system")];
    let axes = if chart.series.is_empty() {
        &by_system[..]
    } else {
        &chart.series
    };
    measured.combinations(axes, at)
}

/// The name of a line: a value is named with its axis unless it is a system or the only axis.
fn name(measured: &Measured<'_>, part: &Filter) -> String {
    let told = measured.told(part);
    if told.is_empty() {
        String::from("all")
    } else {
        told
    }
}

/// A linear scale.
fn scale(title: &str, unit: Unit) -> Scale {
    Scale {
        title: String::from(title),
        unit,
        logarithmic: false,
        complement: false,
    }
}
