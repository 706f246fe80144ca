//! Holm's correction: p-values of several tests that are read together.

/// Each p-value as it counts among its family, in the order given (Holm 1979): the i-th smallest times the number of
/// tests not smaller, never below its predecessor, at most 1.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut adjusted = vec![1.0; values.len()];
    let mut highest: f64 = 0.0;
    for (place, &index) in order.iter().enumerate() {
        let left = super::number(values.len() - place);
        highest = highest.max((values[index] * left).min(1.0));
        adjusted[index] = highest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_adjusted_as_r_does() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let found = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in found.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
