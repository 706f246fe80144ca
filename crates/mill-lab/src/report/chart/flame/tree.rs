//! Stacks laid over each other: equal callers become one frame.

use std::collections::BTreeMap;

/// Frames that are wide enough to be visible, and the total of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::report::chart) struct Tree {
    pub(in crate::report::chart) samples: u64,
    pub(in crate::report::chart) frames: Vec<Frame>,
    /// (function, samples in which it ran itself), the most first; equal ones by name.
    pub(in crate::report::chart) hottest: Vec<(String, u64)>,
}

/// One box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::report::chart) struct Frame {
    pub(in crate::report::chart) name: String,
    pub(in crate::report::chart) kernel: bool,
    pub(in crate::report::chart) depth: usize,
    /// Samples left of it.
    pub(in crate::report::chart) begin: u64,
    pub(in crate::report::chart) samples: u64,
}

impl Tree {
    /// `share_min` is the share of all samples below which a frame is left out, with all that it called.
    pub(in crate::report::chart) fn of(folded: &[(String, u64)], share_min: f64) -> Self {
        // Sorted stacks put equal callers side by side, so that a frame ends where its name first differs.
        let mut stacks: Vec<(Vec<&str>, u64)> = folded
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(stack, count)| (stack.split(';').collect(), *count))
            .collect();
        stacks.sort();
        let samples = stacks
            .iter()
            .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        let least = least(samples, share_min);
        let mut frames = Vec::new();
        let mut open: Vec<(&str, u64)> = Vec::new();
        let mut at = 0_u64;
        let mut own: BTreeMap<&str, u64> = BTreeMap::new();
        for (stack, count) in &stacks {
            let shared = open
                .iter()
                .zip(stack)
                .take_while(|((name, _), other)| name == *other)
                .count();
            close(&mut frames, &mut open, shared, at, least);
            open.extend(stack[shared..].iter().map(|name| (*name, at)));
            at = at.saturating_add(*count);
            if let Some(leaf) = stack.last() {
                let sum = own.entry(leaf).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        close(&mut frames, &mut open, 0, at, least);
        let mut hottest: Vec<(String, u64)> = own
            .into_iter()
            .map(|(name, count)| (plain(name).0.to_owned(), count))
            .collect();
        hottest.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        Self {
            samples,
            frames,
            hottest,
        }
    }
}

/// Ends all open frames above a depth.
fn close(frames: &mut Vec<Frame>, open: &mut Vec<(&str, u64)>, depth: usize, at: u64, least: u64) {
    while open.len() > depth {
        let Some((name, begin)) = open.pop() else {
            return;
        };
        if at - begin >= least {
            let (name, kernel) = plain(name);
            frames.push(Frame {
                name: name.to_owned(),
                kernel,
                depth: open.len(),
                begin,
                samples: at - begin,
            });
        }
    }
}

/// A name without the `_[k]` that folded stacks give the kernel's functions, and whether it was there.
fn plain(name: &str) -> (&str, bool) {
    match name.strip_suffix("_[k]") {
        Some(plain) => (plain, true),
        None => (name, false),
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count lies between zero and the count"
)]
fn least(samples: u64, share_min: f64) -> u64 {
    ((samples as f64 * share_min).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(folded: &[(&str, u64)], share_min: f64) -> Tree {
        let folded: Vec<(String, u64)> = folded
            .iter()
            .map(|(stack, count)| ((*stack).to_owned(), *count))
            .collect();
        Tree::of(&folded, share_min)
    }

    fn frame(name: &str, depth: usize, begin: u64, samples: u64) -> Frame {
        Frame {
            name: name.trim_end_matches("_[k]").to_owned(),
            kernel: name.ends_with("_[k]"),
            depth,
            begin,
            samples,
        }
    }

    #[test]
    fn equal_callers_become_one_frame() {
        let mut tree = tree(&[("a;c_[k]", 3), ("a;b", 2), ("d", 5), ("a", 1)], 0.0);
        tree.frames.sort_by_key(|frame| (frame.depth, frame.begin));
        assert_eq!(tree.samples, 11);
        assert_eq!(
            tree.frames,
            [
                frame("a", 0, 0, 6),
                frame("d", 0, 6, 5),
                frame("b", 1, 1, 2),
                frame("c_[k]", 1, 3, 3),
            ]
        );
        let hottest: Vec<&str> = tree.hottest.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(hottest, ["d", "c", "b", "a"]);
    }

    #[test]
    fn the_same_name_below_another_caller_is_another_frame() {
        let tree = tree(&[("a;x", 1), ("b;x", 1)], 0.0);
        assert_eq!(tree.frames.len(), 4);
    }

    #[test]
    fn narrow_frames_are_left_out_and_the_sum_stays() {
        let tree = tree(&[("a;rare", 1), ("a;often", 999)], 0.01);
        assert_eq!(tree.samples, 1000);
        let names: Vec<&str> = tree.frames.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["often", "a"]);
    }

    #[test]
    fn nothing_makes_an_empty_tree() {
        assert_eq!(tree(&[], 0.1), Tree::default());
        assert_eq!(tree(&[("a", 0)], 0.1), Tree::default());
    }
}
