//! Timed blocks, of servers or of clients, and what follows from those of one case.

use super::ratio::Ratio;

/// One timed block.
pub(super) trait Timed {
    /// Who was measured.
    type Subject: Copy + PartialEq;

    fn subject(&self) -> Self::Subject;

    /// Blocks of one pass were measured next to each other and are compared as pairs.
    fn pass(&self) -> u32;

    fn errors(&self) -> u64;
}

pub(super) fn of<B: Timed>(blocks: &[B], subject: B::Subject) -> impl Iterator<Item = &B> {
    blocks
        .iter()
        .filter(move |block| block.subject() == subject)
}

pub(super) fn errors<B: Timed>(blocks: &[B], subject: B::Subject) -> u64 {
    of(blocks, subject).map(B::errors).sum()
}

/// `None` where a block had errors: such figures are not those of the work that was asked for.
pub(super) fn ratio<B: Timed>(
    blocks: &[B],
    [subject, to]: [B::Subject; 2],
    figure: fn(&B) -> f64,
) -> Option<Ratio> {
    if errors(blocks, subject) + errors(blocks, to) > 0 {
        return None;
    }
    let pairs: Vec<(f64, f64)> = of(blocks, subject)
        .filter_map(|block| {
            let neighbour = of(blocks, to).find(|other| other.pass() == block.pass())?;
            Some((figure(block), figure(neighbour)))
        })
        .collect();
    Ratio::of_pairs(&pairs)
}

/// `None` of no values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = values.get(half).copied()?;
    if values.len() % 2 == 1 {
        Some(upper)
    } else {
        Some(f64::midpoint(values.get(half - 1).copied()?, upper))
    }
}

#[cfg(test)]
mod tests {
    use super::{Timed, errors, median, of, ratio};

    struct Block {
        subject: char,
        pass: u32,
        errors: u64,
        figure: f64,
    }

    impl Timed for Block {
        type Subject = char;

        fn subject(&self) -> char {
            self.subject
        }

        fn pass(&self) -> u32 {
            self.pass
        }

        fn errors(&self) -> u64 {
            self.errors
        }
    }

    /// In each pass "a" takes half the time of "b"; "c" had errors.
    fn blocks() -> Vec<Block> {
        let block = |(subject, pass, errors, figure)| Block {
            subject,
            pass,
            errors,
            figure,
        };
        let blocks = [
            ('a', 0, 0, 1.0),
            ('b', 0, 0, 2.0),
            ('c', 0, 2, 1.0),
            ('c', 1, 3, 1.0),
            ('b', 1, 0, 20.0),
            ('a', 1, 0, 10.0),
            ('a', 2, 0, 7.0),
        ];
        blocks.into_iter().map(block).collect()
    }

    #[test]
    fn blocks_of_one_pass_are_compared_with_each_other() {
        let found = ratio(&blocks(), ['a', 'b'], |block| block.figure).unwrap();
        assert!((found.mean - 0.5).abs() < 1e-9);
        assert_eq!(found.pairs, 2);
    }

    #[test]
    fn blocks_with_errors_have_no_ratio() {
        let blocks = blocks();
        assert_eq!(of(&blocks, 'c').count(), 2);
        assert_eq!(errors(&blocks, 'c'), 5);
        for pair in [['a', 'c'], ['c', 'a']] {
            assert_eq!(ratio(&blocks, pair, |block| block.figure), None);
        }
    }

    #[test]
    fn the_median_of_none_is_none() {
        for (values, expected) in [
            (&[][..], None),
            (&[3.0, 1.0, 2.0], Some(2.0)),
            (&[3.0, 1.0], Some(2.0)),
        ] {
            assert_eq!(median(values.iter().copied()), expected);
        }
    }
}
