//! ab's statistics, by its definitions: integer means, a median that is one sample late for odd numbers.

use super::recorder::Row;

/// One line of the table of times, in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spread {
    pub(super) min: u64,
    /// The sum divided by the number, cut to whole µs.
    pub(super) mean: u64,
    /// Of a sample: divided by the number less one.
    pub(super) deviation: f64,
    pub(super) median: u64,
    pub(super) max: u64,
    pub(super) sum: u64,
}

/// The times of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) connect: Spread,
    pub(super) processing: Spread,
    pub(super) waiting: Spread,
    pub(super) total: Spread,
    /// The median of the total times by the usual definition.
    pub(super) true_median: u64,
}

/// Computes the statistics of `rows`, and leaves these in the order of their total times. `None` if there are none.
pub(super) fn measure(rows: &mut [Row]) -> Option<Times> {
    // Each sort is stable, and ab sorts in this order: equal times stay as the previous sorts left them.
    let connect = spread(rows, |row| row.connect_us)?;
    let processing = spread(rows, processing_us)?;
    let waiting = spread(rows, |row| row.wait_us)?;
    let total = spread(rows, |row| row.total_us)?;
    Some(Times {
        connect,
        processing,
        waiting,
        total,
        true_median: true_median(rows),
    })
}

/// Whole milliseconds, halves up.
pub(super) const fn round_ms(us: u64) -> u64 {
    us.saturating_add(500) / 1000
}

/// Milliseconds with their fraction.
pub(super) fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

pub(super) fn processing_us(row: &Row) -> u64 {
    row.total_us.saturating_sub(row.connect_us)
}

/// The total time within which `percent` of the rows were served, as ab's table takes it; `rows` are sorted.
pub(super) fn percentile(rows: &[Row], percent: usize) -> u64 {
    let index = rows.len() * percent / 100;
    nth(rows, index)
}

/// As in ab's CSV file. ab reads beyond its samples if there are fewer than fifty; we take the last.
pub(super) fn percentile_csv(rows: &[Row], percent: usize) -> u64 {
    let index = match percent {
        0 => 0,
        100 => rows.len(),
        // In whole numbers, halves rounded up.
        _ => (rows.len() * percent + 50) / 100,
    };
    nth(rows, index)
}

fn nth(rows: &[Row], index: usize) -> u64 {
    let index = index.min(rows.len().saturating_sub(1));
    rows.get(index).map_or(0, |row| row.total_us)
}

fn spread(rows: &mut [Row], time: impl Fn(&Row) -> u64) -> Option<Spread> {
    rows.sort_by_key(&time);
    let (min, max) = (time(rows.first()?), time(rows.last()?));
    let count = rows.len() as u64;
    let sum = rows.iter().map(&time).fold(0, u64::saturating_add);
    let mean = sum / count;
    let squares: f64 = rows
        .iter()
        .map(|row| (time(row) as f64 - mean as f64).powi(2))
        .sum();
    let deviation = if count > 1 {
        (squares / (count - 1) as f64).sqrt()
    } else {
        0.0
    };
    let middle = rows.len() / 2;
    let at = |index: usize| rows.get(index).map_or(0, &time);
    let median = if rows.len() > 1 && rows.len() % 2 == 1 {
        u64::midpoint(at(middle), at(middle + 1))
    } else {
        at(middle)
    };
    Some(Spread {
        min,
        mean,
        deviation,
        median,
        max,
        sum,
    })
}

fn true_median(rows: &[Row]) -> u64 {
    let middle = rows.len() / 2;
    if rows.len() % 2 == 1 {
        nth(rows, middle)
    } else {
        u64::midpoint(nth(rows, middle.saturating_sub(1)), nth(rows, middle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(times: &[(u64, u64, u64)]) -> Vec<Row> {
        let row = |&(connect_us, total_us, wait_us): &(u64, u64, u64)| Row {
            started_us: 0,
            connect_us,
            total_us,
            wait_us,
        };
        times.iter().map(row).collect()
    }

    fn totals(times: &[u64]) -> Vec<Row> {
        rows(&times.iter().map(|time| (0, *time, 0)).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check(times: &[u64], mean: u64, deviation: f64, median: u64, true_median: u64) {
        let mut rows = totals(times);
        let times = measure(&mut rows).unwrap();
        assert_eq!((times.total.mean, times.total.median), (mean, median));
        assert_eq!(times.true_median, true_median);
        assert!((times.total.deviation - deviation).abs() < 1e-9);
    }

    #[test]
    fn statistics_are_abs() {
        check(&[7], 7, 0.0, 7, 7);
        // Even: the upper of the middle two.
        check(&[4, 1, 3, 2], 2, (6.0_f64 / 3.0).sqrt(), 3, 2);
        // Odd: between the middle one and the one above it.
        check(&[10, 20, 60], 30, 700.0_f64.sqrt(), 40, 20);
        check(&[5, 1, 2, 4, 3], 3, 2.5_f64.sqrt(), 3, 3);
    }

    #[test]
    fn the_lines_of_the_table_are_measured_apart() {
        let mut rows = rows(&[(100, 900, 500), (300, 500, 100)]);
        let times = measure(&mut rows).unwrap();
        assert_eq!((times.connect.min, times.connect.max), (100, 300));
        assert_eq!((times.processing.min, times.processing.max), (200, 800));
        assert_eq!((times.waiting.mean, times.total.mean), (300, 700));
        let order: Vec<u64> = rows.iter().map(|row| row.total_us).collect();
        assert_eq!(order, [500, 900]);
        assert_eq!(measure(&mut []), None);
    }

    #[test]
    fn percentiles_are_taken_from_the_index_that_ab_computes() {
        let all = totals(&(1..=200).collect::<Vec<_>>());
        let taken = |percent| (percentile(&all, percent), percentile_csv(&all, percent));
        assert_eq!(taken(0), (1, 1));
        assert_eq!(taken(50), (101, 101));
        assert_eq!(taken(99), (199, 199));
        assert_eq!(taken(100), (200, 200));
        let three = totals(&[1, 2, 3]);
        let csv: Vec<u64> = [0, 1, 16, 17, 49, 50, 83, 84, 99, 100]
            .map(|percent| percentile_csv(&three, percent))
            .to_vec();
        assert_eq!(csv, [1, 1, 1, 2, 2, 3, 3, 3, 3, 3]);
    }

    #[test]
    fn milliseconds_are_rounded_halves_up() {
        assert_eq!([499, 500, 1499, 1500].map(round_ms), [0, 1, 1, 2]);
    }
}
