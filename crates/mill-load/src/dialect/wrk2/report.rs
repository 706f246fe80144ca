//! The parts of wrk2's report that differ from wrk's.

use crate::dialect::wrk::statistics::Statistics;
use crate::dialect::wrk::units::{decimal, padded, time_us};
use crate::dialect::wrk2::histogram::{BUCKETS, Recorded, SUB_BUCKETS};
use crate::dialect::wrk2::recorder::Calibration;
use std::io::{self, Write};

/// Printed when a thread is calibrated.
pub(crate) fn emit_calibration(calibration: Calibration, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "  Thread calibration: mean lat.: {:.3}ms, rate sampling interval: {}ms",
        calibration.mean_us as f64 / 1000.0,
        calibration.interval_ms
    )
}

/// The distribution of latencies as `-L` prints it.
pub(crate) fn emit_latency(latency: &Recorded, out: &mut dyn Write) -> io::Result<()> {
    emit_distribution(latency, "Recorded Latency", out)
}

/// That from the actual start, as `-U` adds it.
pub(crate) fn emit_uncorrected(latency: &Recorded, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out)?;
    let what = "Uncorrected Latency (measured without taking delayed starts into account)";
    emit_distribution(latency, what, out)
}

fn emit_distribution(latency: &Recorded, what: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  Latency Distribution (HdrHistogram - {what})")?;
    for percent in PERCENTILES {
        let value = time_us(latency.percentile(percent) as f64);
        writeln!(out, "{percent:7.3}%{}", padded(&value, 10))?;
    }
    writeln!(out, "\n  Detailed Percentile spectrum:")?;
    emit_spectrum(latency, out)?;
    writeln!(
        out,
        "----------------------------------------------------------"
    )
}

/// The table that plotters of HDR histograms read, in milliseconds.
fn emit_spectrum(latency: &Recorded, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>12} {:>12} {:>12} {:>12}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    for tick in latency.ticks() {
        let (value, share) = (tick.value as f64 / 1000.0, tick.share);
        let inverse = 1.0 / (1.0 - share);
        writeln!(
            out,
            "{value:12.3} {share:12.6} {:12} {inverse:12.2}",
            tick.count
        )?;
    }
    let ms = |value: f64| decimal(value / 1000.0, 3);
    writeln!(
        out,
        "#[Mean    = {:>12}, StdDeviation   = {:>12}]",
        ms(latency.mean()),
        ms(latency.stdev())
    )?;
    writeln!(
        out,
        "#[Max     = {:>12}, Total count    = {:12}]",
        ms(latency.max() as f64),
        latency.count()
    )?;
    writeln!(
        out,
        "#[Buckets = {BUCKETS:12}, SubBuckets     = {SUB_BUCKETS:12}]"
    )
}

/// Those of wrk2's distribution.
const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 99.0, 99.9, 99.99, 99.999, 100.0];
