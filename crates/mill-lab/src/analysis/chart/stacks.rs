//! Flame graphs of profiles that probes left.

use super::super::measured::Measured;
use crate::findings::{Drawing, Picture};

/// One for each system and profile; the first trial that has it.
pub(in super::super) fn flames(measured: &Measured<'_>) -> Vec<Picture> {
    let mut pictures: Vec<Picture> = Vec::new();
    for trial in &measured.trials {
        let system = trial.point.get("system").map_or("", String::as_str);
        let files = measured.kept.files.iter().filter(|file| {
            file.trial == trial.number
                && file.name.starts_with("profile")
                && file.name.ends_with(".folded")
        });
        for file in files {
            let folded = folded(&file.text);
            let kind = file
                .name
                .trim_start_matches("profile")
                .trim_end_matches(".folded");
            let kind = kind.replace(['-', '_'], " ");
            let title = format!(
                "Where the CPU time of {} went{kind}",
                measured.title("system", system)
            );
            if folded.is_empty() || pictures.iter().any(|picture| picture.title == title) {
                continue;
            }
            let samples: u64 = folded.iter().map(|(_, count)| count).sum();
            pictures.push(Picture {
                title,
                drawing: Drawing::Flame { folded },
                caption: format!(
                    "{samples} samples, in a pass of its own that no table uses; the wider, the more time."
                ),
            });
        }
    }
    pictures
}

/// `a;b;c 12` by line, the commonest first; the rest of a long tail does not show.
fn folded(text: &str) -> Vec<(String, u64)> {
    let mut stacks: Vec<(String, u64)> = text
        .lines()
        .filter_map(|line| {
            let (stack, count) = line.trim().rsplit_once(' ')?;
            Some((String::from(stack.trim()), count.parse().ok()?))
        })
        .collect();
    stacks.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    stacks.truncate(STACKS_MAX);
    stacks
}

/// Different stacks in one picture: beyond, each is thinner than a pixel, and the page has a limit of 2 MB.
const STACKS_MAX: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_stacks_are_read_the_commonest_first() {
        let text = "nginx;main;write 3\nnginx;main 10\nno count\n\nnginx;[kernel] tcp_sendmsg 7\n";
        let expected = [
            ("nginx;main", 10),
            ("nginx;[kernel] tcp_sendmsg", 7),
            ("nginx;main;write", 3),
        ];
        assert_eq!(
            folded(text),
            expected.map(|(stack, count)| (String::from(stack), count))
        );
    }
}
