//! The seed's own lines: what a second looks like, and where a load begins and ends.

use super::*;

/// Seed 003, 50 000 users, whole. The first line lost its first digit in the document.
const SEED: &str = "\
2:37:37 eth0 DOWN:3 Kb/s   UP:3 Kb/s
12:37:38 eth0 DOWN:528 b/s   UP:1 Kb/s
12:37:39 eth0 DOWN:599 Mb/s   UP:196 Mb/s
12:37:40 eth0 DOWN:3925 Mb/s   UP:767 Mb/s
12:37:41 eth0 DOWN:4186 Mb/s   UP:809 Mb/s
12:37:42 eth0 DOWN:4238 Mb/s   UP:818 Mb/s
12:37:43 eth0 DOWN:4286 Mb/s   UP:844 Mb/s
12:37:44 eth0 DOWN:4373 Mb/s   UP:837 Mb/s
12:37:45 eth0 DOWN:4360 Mb/s   UP:836 Mb/s
12:37:46 eth0 DOWN:4329 Mb/s   UP:842 Mb/s
12:37:47 eth0 DOWN:4351 Mb/s   UP:845 Mb/s
12:37:48 eth0 DOWN:4356 Mb/s   UP:833 Mb/s
12:37:49 eth0 DOWN:4362 Mb/s   UP:837 Mb/s
12:37:50 eth0 DOWN:4345 Mb/s   UP:851 Mb/s
12:37:51 eth0 DOWN:4307 Mb/s   UP:841 Mb/s
12:37:52 eth0 DOWN:4306 Mb/s   UP:850 Mb/s
12:37:53 eth0 DOWN:4333 Mb/s   UP:839 Mb/s
12:37:54 eth0 DOWN:4400 Mb/s   UP:836 Mb/s
12:37:55 eth0 DOWN:4373 Mb/s   UP:835 Mb/s
12:37:56 eth0 DOWN:4437 Mb/s   UP:846 Mb/s
12:37:57 eth0 DOWN:4353 Mb/s   UP:840 Mb/s
12:37:58 eth0 DOWN:4352 Mb/s   UP:846 Mb/s
12:37:59 eth0 DOWN:4373 Mb/s   UP:840 Mb/s
12:38:00 eth0 DOWN:4399 Mb/s   UP:834 Mb/s
12:38:01 eth0 DOWN:4474 Mb/s   UP:834 Mb/s
12:38:02 eth0 DOWN:4290 Mb/s   UP:849 Mb/s
12:38:03 eth0 DOWN:4343 Mb/s   UP:845 Mb/s
12:38:04 eth0 DOWN:4374 Mb/s   UP:840 Mb/s
12:38:05 eth0 DOWN:4341 Mb/s   UP:850 Mb/s
12:38:06 eth0 DOWN:4390 Mb/s   UP:839 Mb/s
12:38:07 eth0 DOWN:4338 Mb/s   UP:847 Mb/s
12:38:08 eth0 DOWN:4357 Mb/s   UP:845 Mb/s
12:38:09 eth0 DOWN:4005 Mb/s   UP:758 Mb/s
12:38:10 eth0 DOWN:11 Mb/s   UP:25 Mb/s
";

/// Back to bits a second.
fn parse(line: &str) -> Option<(f64, f64)> {
    let (_, rest) = line.split_once(" DOWN:")?;
    let (down, up) = rest.split_once("   UP:")?;
    let amount = |text: &str| {
        let (number, unit) = text.trim().split_once(' ')?;
        let size = match unit {
            "Mb/s" => 1e6,
            "Kb/s" => 1e3,
            "b/s" => 1.0,
            _ => return None,
        };
        Some(number.parse::<f64>().ok()? * size)
    };
    Some((amount(down)?, amount(up)?))
}

#[test]
fn lines_are_written_as_the_seed_has_them() {
    for written in SEED.lines() {
        let time = written.split(' ').next().unwrap();
        let rate = parse(written).unwrap();
        assert_eq!(line(time, "eth0", rate), written);
    }
}

#[test]
fn the_seeds_ramps_are_cut_by_themselves() {
    let down: Vec<f64> = SEED.lines().map(|line| parse(line).unwrap().0).collect();
    assert_eq!(down.len(), 34);
    let steady = steady_part(&down);
    // The document's own lines from 12:37:40 to 12:38:09.
    assert_eq!(steady, 3..33);
    let rates = &down[steady];
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(0.0, f64::max);
    assert_eq!((least, most), (3925e6, 4474e6));
}

#[test]
fn small_rates_have_small_units() {
    let check = |bits: f64, expected: &str| assert_eq!(amount(bits), expected);
    check(0.0, "0 b/s");
    check(999.9, "999 b/s");
    check(1000.0, "1 Kb/s");
    check(999_999.0, "999 Kb/s");
    check(25e9, "25000 Mb/s");
}
