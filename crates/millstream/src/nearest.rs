//! The nearest known word, for answers to typing errors.

/// The word that takes the fewest changes to get, if that is few enough to be what was meant.
pub(crate) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let measured = known.into_iter().map(|word| (distance(typed, word), word));
    let (changes, word) = measured.min_by_key(|(changes, _)| *changes)?;
    // A third of the letters: one in "stp", two in "realod" and "--prot".
    let most = typed.chars().count().div_ceil(3);
    (changes <= most).then_some(word)
}

/// Letters to insert, remove, replace or swap with their neighbour (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let at =
                |line: &[usize], index: usize| line.get(index).copied().unwrap_or(usize::MAX - 1);
            let replaced = at(&last, column) + usize::from(letter != other);
            let mut best = replaced
                .min(at(&last, column + 1) + 1)
                .min(at(&current, column) + 1);
            let swapped = row > 0
                && column > 0
                && from.get(row - 1) == Some(other)
                && to.get(column - 1) == Some(letter);
            if swapped {
                best = best.min(at(&before_last, column - 1) + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("a", "a", 0),
            ("realod", "reload", 2),
            ("stpo", "stop", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn only_what_may_have_been_meant_is_offered() {
        let known = ["stop", "quit", "reopen", "reload"];
        assert_eq!(nearest("realod", known), Some("reload"));
        assert_eq!(nearest("stp", known), Some("stop"));
        assert_eq!(nearest("restart", known), None);
        assert_eq!(nearest("x", known), None);
    }
}
