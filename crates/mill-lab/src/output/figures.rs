//! Figures that follow from others, and the names of percentiles.

use super::Printed;
use super::quantity::Quantity;
use crate::record::Figures;

impl Printed {
    /// Notes a figure; what is no number is left out.
    pub(super) fn set(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.figures.insert(String::from(name), value);
        }
    }

    /// Throughput in the units that people quote. The true bits are 10⁹ a second; the other rule is there to be
    /// compared with documents that divided MiB by 1000.
    pub(super) fn set_transfer(&mut self, bytes_per_s: f64) {
        set_transfer(&mut self.figures, bytes_per_s);
    }

    /// Size of an answer with its head, and how exact it is at the precision that was printed.
    pub(super) fn set_response(&mut self, bytes: Quantity) {
        self.set("bytes_per_response", bytes.value);
        self.set("bytes_per_response.half_width", bytes.half_width);
    }

    /// Errors by kind, all of them, and their share of what was tried. Those of `tried_besides` are not among the
    /// requests that the tool counted as done.
    pub(super) fn set_failures(&mut self, kinds: &[(&str, f64)], all: f64, tried_besides: f64) {
        for (kind, count) in kinds {
            self.set(&format!("errors.{kind}"), *count);
        }
        self.set("errors.all", all);
        let done = self.figures.get("requests").copied().unwrap_or(0.0);
        let tried = done + tried_besides;
        if tried > 0.0 {
            self.set("failed_share", (all / tried).min(1.0));
        } else if all > 0.0 {
            self.set("failed_share", 1.0);
        }
    }

    /// A percentile of latency, both as a point of the curve and as a figure.
    pub(super) fn add_percentile(&mut self, percent: f64, seconds: f64) {
        self.percentiles.push((percent, seconds));
        if percent < 100.0 {
            self.set(&percentile_name("latency_s", percent), seconds);
        }
    }

    /// Percentiles ascend, and each is there once.
    pub(super) fn sort_percentiles(&mut self) {
        self.percentiles
            .sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
        self.percentiles.dedup_by(|one, other| one.0 == other.0);
    }
}

pub(super) fn set_transfer(figures: &mut Figures, bytes_per_s: f64) {
    if !bytes_per_s.is_finite() {
        return;
    }
    let bits = bytes_per_s * 8.0;
    let mut set = |name: &str, value: f64| figures.insert(String::from(name), value);
    set("transfer_bytes_per_s", bytes_per_s);
    set("gbit_per_s", bits / 1e9);
    set("gbit_per_s_from_mib", bits / (1024.0 * 1024.0) / 1000.0);
}

/// `latency_s.p50`, `latency_s.p999` of 99.9.
pub(super) fn percentile_name(family: &str, percent: f64) -> String {
    let digits = format!("{percent:.5}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{family}.p{}", digits.replace('.', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_named_without_a_point() {
        assert_eq!(percentile_name("latency_s", 50.0), "latency_s.p50");
        assert_eq!(percentile_name("latency_s", 99.9), "latency_s.p999");
        assert_eq!(percentile_name("latency_s", 99.999), "latency_s.p99999");
    }

    #[test]
    fn the_two_rules_for_gigabits_are_463_hundredths_of_a_percent_apart() {
        let mut printed = Printed::default();
        printed.set_transfer(2_716_000_000.0);
        let ratio = printed.figures["gbit_per_s_from_mib"] / printed.figures["gbit_per_s"];
        assert!((1.0 - ratio - 0.0463).abs() < 0.0001, "{ratio}");
    }
}
