//! How many files a started process may open: the recipe's number, or the machine's limit.

use crate::host::{Host, Line};
use mill_lab::record::TunedKey;

/// The limit that processes get, and its text in the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// For `prlimit --nofile=`.
    pub limit: u64,
    pub tuned: TunedKey,
}

/// Tries whether `host` allows the wanted number; otherwise takes the hard limit there.
pub fn open_files(host: &Host, wanted: u64) -> Option<OpenFiles> {
    let try_it = |limit: u64| {
        let mut line = Line::new(["true"]);
        line.nofile = Some(limit);
        host.command(&line)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let before = host
        .command(&Line::new(["sh", "-c", "ulimit -Hn"]))
        .output()
        .ok()?;
    let before = String::from_utf8_lossy(&before.stdout).trim().to_owned();
    let hard = before.parse::<u64>().unwrap_or(wanted);
    let limit = if try_it(wanted) {
        wanted
    } else {
        hard.min(wanted)
    };
    let problem =
        (limit < wanted).then(|| format!("refused: a process may open {limit} files here"));
    Some(OpenFiles {
        limit,
        tuned: TunedKey {
            key: String::from("open files (nofile)"),
            before: Some(before),
            wanted: wanted.to_string(),
            problem,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_below_the_hard_limit_is_granted_and_an_endless_one_is_cut() {
        let small = open_files(&Host::Local, 64).unwrap();
        assert_eq!((small.limit, small.tuned.problem), (64, None));
        let endless = open_files(&Host::Local, u64::MAX / 2).unwrap();
        assert!(endless.limit < u64::MAX / 2);
        assert!(endless.tuned.problem.unwrap().starts_with("refused: "));
    }
}
