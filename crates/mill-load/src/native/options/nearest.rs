//! The nearest known word, for messages about typing errors.

/// The word with the smallest edit distance, if that is at most a third of its letters.
pub(super) fn nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = typed.trim_start_matches('-');
    let most = typed.chars().count().div_ceil(3);
    known
        .into_iter()
        .map(|word| (changes(typed, word.trim_start_matches('-')), word))
        .filter(|(changes, _)| *changes <= most)
        .min_by_key(|(changes, _)| *changes)
        .map(|(_, word)| word)
}

/// Letters to insert, remove or replace (Levenshtein's distance), one row of its table at a time.
fn changes(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, letter) in from.chars().enumerate() {
        // The cell above and to the left of the one that is computed.
        let mut diagonal = done;
        let mut left = done + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&to) {
            let above = *cell;
            let replaced = diagonal + usize::from(letter != *other);
            left = replaced.min(above + 1).min(left + 1);
            (diagonal, *cell) = (above, left);
        }
        if let Some(first) = row.first_mut() {
            *first = done + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("rats", "rate", 1),
        ] {
            assert_eq!(changes(from, to), expected, "{from} {to}");
            assert_eq!(changes(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn only_what_may_have_been_meant_is_offered() {
        let known = ["--connections", "--rate", "--think"];
        assert_eq!(nearest("--conections", known), Some("--connections"));
        assert_eq!(nearest("--rte", known), Some("--rate"));
        assert_eq!(nearest("--frobnicate", known), None);
    }
}
