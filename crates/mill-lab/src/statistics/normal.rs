//! The normal distribution and Student's quantile.

use super::number;

/// Φ(z): the share of the standard normal distribution below z, to 14 digits.
pub fn normal_cdf(z: f64) -> f64 {
    if z.is_nan() {
        return z;
    }
    let tail = upper_tail(z.abs());
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// Φ⁻¹(p): Acklam's rational approximation (relative error 1.15e-9), made exact to 14 digits by one step of Halley's method
/// on `normal_cdf`. ±∞ at 0 and 1, NaN outside.
pub fn normal_quantile(p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        };
    }
    // The upper half by symmetry: `1 - p` is exact there, and errors of the tail stay relative to the tail.
    if p > 0.5 {
        return -normal_quantile(1.0 - p);
    }
    let z = first_guess(p);
    let error = (normal_cdf(z) - p) * (2.0 * std::f64::consts::PI).sqrt() * (z * z / 2.0).exp();
    z - error / (1.0 + z * error / 2.0)
}

/// The quantile of Student's distribution with `freedom` degrees, at p ≥ 0.5. Closed for 1 and 2 degrees, else by Hill's algorithm 396
/// (Communications of the ACM 13, 1970), to six digits.
pub fn student_quantile(p: f64, freedom: usize) -> f64 {
    debug_assert!((0.5..1.0).contains(&p), "upper half only: {p}");
    let two_tails = 2.0 * (1.0 - p);
    match freedom {
        0 => f64::INFINITY,
        1 => (std::f64::consts::FRAC_PI_2 * (1.0 - two_tails)).tan(),
        2 => (2.0 / (two_tails * (2.0 - two_tails)) - 2.0).sqrt(),
        _ => hill(two_tails, number(freedom)),
    }
}

fn hill(two_tails: f64, n: f64) -> f64 {
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * std::f64::consts::FRAC_PI_2).sqrt() * n;
    let mut y = (d * two_tails).powf(2.0 / n);
    if y > 0.05 + a {
        let x = normal_quantile(two_tails / 2.0);
        y = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = (a * y * y).exp_m1();
    } else {
        let first = 1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0);
        y = ((first + 0.5 / (n + 4.0)) * y - 1.0) * (n + 1.0) / (n + 2.0) + 1.0 / y;
    }
    (n * y).sqrt()
}

/// The share above z ≥ 0: the series of Φ near the middle, Laplace's continued fraction in the tail (Abramowitz and Stegun 26.2.11
/// and 26.2.14).
fn upper_tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z < 3.0 {
        let (mut term, mut sum, mut odd) = (z, z, 1.0);
        while term.abs() > 1e-17 {
            odd += 2.0;
            term *= z * z / odd;
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let mut fraction = z;
    for k in (1..=120_u32).rev() {
        fraction = z + f64::from(k) / fraction;
    }
    density / fraction
}

/// Acklam's coefficients, p ≤ 0.5.
fn first_guess(p: f64) -> f64 {
    const CENTRE: ([f64; 6], [f64; 6]) = (
        [
            -3.969_683_028_665_376e1,
            2.209_460_984_245_205e2,
            -2.759_285_104_469_687e2,
            1.383_577_518_672_69e2,
            -3.066_479_806_614_716e1,
            2.506_628_277_459_239,
        ],
        [
            -5.447_609_879_822_406e1,
            1.615_858_368_580_409e2,
            -1.556_989_798_598_866e2,
            6.680_131_188_771_972e1,
            -1.328_068_155_288_572e1,
            1.0,
        ],
    );
    const TAIL: ([f64; 6], [f64; 5]) = (
        [
            -7.784_894_002_430_293e-3,
            -3.223_964_580_411_365e-1,
            -2.400_758_277_161_838,
            -2.549_732_539_343_734,
            4.374_664_141_464_968,
            2.938_163_982_698_783,
        ],
        [
            7.784_695_709_041_462e-3,
            3.224_671_290_700_398e-1,
            2.445_134_137_142_996,
            3.754_408_661_907_416,
            1.0,
        ],
    );
    let polynomial =
        |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    if p < 0.024_25 {
        let q = (-2.0 * p.ln()).sqrt();
        return polynomial(&TAIL.0, q) / polynomial(&TAIL.1, q);
    }
    let q = p - 0.5;
    polynomial(&CENTRE.0, q * q) * q / polynomial(&CENTRE.1, q * q)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution_is_that_of_scipy() {
        // scipy.stats.norm.cdf(z)
        for (z, expected) in [
            (-8.0, 6.220_960_574_271_74e-16),
            (-3.0, 0.001_349_898_031_630_093_3),
            (-1.96, 0.024_997_895_148_220_435),
            (-0.5, 0.308_537_538_725_986_9),
            (0.0, 0.5),
            (0.3, 0.617_911_422_188_952_6),
            (1.0, 0.841_344_746_068_542_9),
            (2.5, 0.993_790_334_674_223_8),
            (5.0, 0.999_999_713_348_428_1),
        ] {
            let found = normal_cdf(z);
            assert!(
                ((found - expected) / expected).abs() < 1e-12,
                "{z}: {found}"
            );
        }
    }

    #[test]
    fn the_normal_quantile_is_that_of_scipy() {
        // scipy.stats.norm.ppf(p)
        for (p, expected) in [
            (1e-10, -6.361_340_902_404_056),
            (0.001, -3.090_232_306_167_813),
            (0.025, -1.959_963_984_540_054),
            (0.3, -0.524_400_512_708_040_9),
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_054),
            (0.9999, 3.719_016_485_455_709),
        ] {
            let found = normal_quantile(p);
            assert!((found - expected).abs() < 1e-11, "{p}: {found}");
        }
        assert!(normal_quantile(1.5).is_nan());
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn students_quantile_is_that_of_scipy() {
        // scipy.stats.t.ppf(0.975, d)
        for (freedom, expected) in [
            (1, 12.706_204_736),
            (2, 4.302_652_73),
            (3, 3.182_446_305),
            (4, 2.776_445_105),
            (7, 2.364_624_252),
            (10, 2.228_138_852),
            (20, 2.085_963_447),
            (60, 2.000_297_822),
            (500, 1.964_719_837),
        ] {
            let found = student_quantile(0.975, freedom);
            assert!(
                ((found - expected) / expected).abs() < 2e-4,
                "{freedom}: {found}"
            );
        }
    }
}
