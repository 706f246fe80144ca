//! System calls per request, counted by strace.

use super::failure::{Failure, Result};

/// Calls per request, by name, the most frequent first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SystemCalls {
    pub(super) by_name: Vec<(String, f64)>,
}

impl SystemCalls {
    pub(super) fn total(&self) -> f64 {
        self.by_name.iter().map(|(_, calls)| calls).sum()
    }

    /// The calls that belong to the work, each with its count.
    pub(super) fn listed(&self) -> String {
        let frequent = self
            .by_name
            .iter()
            .filter(|(_, calls)| *calls >= LISTED_MIN);
        let words = frequent.map(|(name, calls)| format!("{name} {calls:.2}"));
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Per request. Rarer calls are noise of the load, such as a full socket now and then.
const LISTED_MIN: f64 = 0.01;

/// How often each call was made.
pub(super) type Counts = Vec<(String, u64)>;

/// The rows of strace's table: share, seconds, microseconds, calls, errors if any, name.
pub(super) fn parse(text: &str) -> Counts {
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (&name, numbers) = words.split_last()?;
        let calls = numbers.get(3)?.parse().ok()?;
        (name != "total").then(|| (name.to_owned(), calls))
    });
    rows.collect()
}

pub(super) fn per_request(
    calls: &[(String, u64)],
    less: &[(String, u64)],
    requests: u64,
) -> Result<SystemCalls> {
    if requests == 0 {
        return Err(Failure("no request was served under strace".to_owned()));
    }
    let mut by_name: Vec<(String, f64)> = calls
        .iter()
        .map(|(name, count)| {
            let less = less.iter().find(|(other, _)| other == name);
            let count = *count as f64 - less.map_or(0.0, |(_, count)| *count as f64);
            (name.clone(), count / requests as f64)
        })
        .filter(|(_, calls)| *calls > 0.0)
        .collect();
    by_name.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    Ok(SystemCalls { by_name })
}

#[cfg(test)]
mod tests {
    use super::{SystemCalls, parse, per_request};

    const TABLE: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.006000           3      2000           writev
 40.00    0.004000           2      2000         7 recvfrom
  0.00    0.000000           2        40           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.010000           2      4040         7 total
";

    #[test]
    fn each_row_is_counted_and_the_total_is_not() {
        let calls = parse(TABLE);
        let names: Vec<_> = calls
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        assert_eq!(
            names,
            [("writev", 2000), ("recvfrom", 2000), ("epoll_wait", 40)]
        );
    }

    #[test]
    fn calls_of_the_shorter_run_are_taken_off() {
        let less = [("writev".to_owned(), 1000), ("epoll_wait".to_owned(), 40)];
        let calls = per_request(&parse(TABLE), &less, 1000).unwrap();
        assert_eq!(
            calls.by_name,
            [("recvfrom".to_owned(), 2.0), ("writev".to_owned(), 1.0)]
        );
        assert!((calls.total() - 3.0).abs() < 1e-9);
        assert!(per_request(&parse(TABLE), &[], 0).is_err());
    }

    #[test]
    fn rare_calls_are_not_listed() {
        let by_name = [("read", 1.0), ("write", 0.01), ("poll", 0.009)];
        let calls = SystemCalls {
            by_name: by_name.map(|(name, count)| (name.to_owned(), count)).into(),
        };
        assert_eq!(calls.listed(), "read 1.00, write 0.01");
    }
}
