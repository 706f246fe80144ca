//! What the CPUs of each side did, as stacks of 100 %.

use super::super::measured::{Filter, Measured, over};
use super::{Drawn, name, series};
use crate::findings::Drawing;
use crate::recipe::Chart;
use crate::statistics::median;

pub(super) fn stacks(measured: &Measured<'_>, chart: &Chart, at: &Filter) -> Drawn {
    let mut bars: Vec<(String, Vec<f64>)> = Vec::new();
    for part in series(measured, chart, at) {
        let here = over(&[at, &part]);
        for side in ["server", "client"] {
            if let Some(shares) = shares(measured, &here, side) {
                bars.push((format!("{}: {side}", name(measured, &part)), shares));
            }
        }
    }
    if bars.is_empty() {
        return None;
    }
    // Classes without any time only lengthen the legend.
    let seen: Vec<bool> = (0..PARTS.len())
        .map(|index| bars.iter().any(|(_, shares)| shares[index] > 0.005))
        .collect();
    let keep = |index: &usize| seen[*index];
    let parts = (0..PARTS.len())
        .filter(keep)
        .map(|index| String::from(PARTS[index]))
        .collect();
    for (_, shares) in &mut bars {
        *shares = (0..PARTS.len())
            .filter(keep)
            .map(|index| shares[index])
            .collect();
    }
    let caption = "Medians of the steady part, of the CPUs of each side, in percent.";
    Some((Drawing::Stacks { parts, bars }, String::from(caption)))
}

/// Medians of each class, scaled to 100 because medians of parts do not sum up; none without samples.
fn shares(measured: &Measured<'_>, at: &Filter, side: &str) -> Option<Vec<f64>> {
    let mut shares: Vec<f64> = PARTS
        .iter()
        .map(|part| median(&measured.values(at, &format!("cpu.{side}.{part}"))).unwrap_or(0.0))
        .collect();
    let sum: f64 = shares.iter().sum();
    if sum < 1.0 {
        return None;
    }
    for share in &mut shares {
        *share *= 100.0 / sum;
    }
    Some(shares)
}

/// As mpstat names them, from busy to idle.
const PARTS: [&str; 8] = [
    "usr", "nice", "sys", "soft", "irq", "steal", "iowait", "idle",
];
