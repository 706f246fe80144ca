//! The files of `-e` and `-g`.

use super::recorder::Row;
use super::statistics::{ms, percentile_csv, processing_us, round_ms};
use mill_http::date::DateTime;
use std::io::{self, Write};

/// When a run began, by the wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Began {
    pub(super) unix_us: i64,
    /// The offset of local time from UTC.
    pub(super) utc_offset_seconds: i32,
}

/// Writes the percentiles; `rows` are in the order of their total times and not empty.
pub(super) fn emit_csv(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"Percentage served,Time in ms\n")?;
    for percent in 0..=100 {
        let time = ms(percentile_csv(rows, percent));
        writeln!(out, "{percent},{time:.3}")?;
    }
    Ok(())
}

/// Writes all samples, in the order of their total times.
pub(super) fn emit_gnuplot(rows: &[Row], began: Began, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"starttime\tseconds\tctime\tdtime\tttime\twait\n")?;
    for row in rows {
        let started_us = i64::try_from(row.started_us).unwrap_or(i64::MAX);
        let seconds = began
            .unix_us
            .saturating_add(started_us)
            .div_euclid(1_000_000);
        writeln!(
            out,
            "{}\t{seconds}\t{}\t{}\t{}\t{}",
            ctime(seconds, began.utc_offset_seconds),
            round_ms(row.connect_us),
            round_ms(processing_us(row)),
            round_ms(row.total_us),
            round_ms(row.wait_us)
        )?;
    }
    Ok(())
}

/// `Sat Nov 21 05:08:43 2026`: apr_ctime, local time.
fn ctime(unix_seconds: i64, utc_offset_seconds: i32) -> String {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let date_time = DateTime::at(unix_seconds, utc_offset_seconds / 60);
    let day = DAYS.get(usize::from(date_time.weekday)).unwrap_or(&"???");
    let month = usize::from(date_time.month).checked_sub(1);
    let month = month.and_then(|month| MONTHS.get(month)).unwrap_or(&"???");
    format!(
        "{day} {month} {:02} {:02}:{:02}:{:02} {:04}",
        date_time.day, date_time.hour, date_time.minute, date_time.second, date_time.year
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(emit: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        emit(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn percentiles_are_written_with_their_fractions() {
        let rows: Vec<Row> = (1..=100)
            .map(|n| Row {
                total_us: n * 1001,
                ..Row::default()
            })
            .collect();
        let csv = text(|out| emit_csv(&rows, out));
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 102);
        assert_eq!(lines[0], "Percentage served,Time in ms");
        assert_eq!(lines[1], "0,1.001");
        assert_eq!(lines[51], "50,51.051");
        assert_eq!(lines[100], "99,100.100");
        assert_eq!(lines[101], "100,100.100");
    }

    #[test]
    fn samples_are_written_with_the_local_time_of_their_start() {
        let rows = [
            Row {
                started_us: 0,
                connect_us: 499,
                total_us: 1600,
                wait_us: 500,
            },
            Row {
                started_us: 600_000,
                connect_us: 0,
                total_us: 2400,
                wait_us: 2300,
            },
        ];
        let began = Began {
            unix_us: 1_795_237_723_500_000,
            utc_offset_seconds: -12_600,
        };
        let expected = "starttime\tseconds\tctime\tdtime\tttime\twait\n\
                        Sat Nov 21 01:38:43 2026\t1795237723\t0\t1\t2\t1\n\
                        Sat Nov 21 01:38:44 2026\t1795237724\t0\t2\t2\t2\n";
        assert_eq!(text(|out| emit_gnuplot(&rows, began, out)), expected);
    }
}
