//! Suggestions for misspelt words.

/// The candidate that is nearest to `word`, if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let most = word.len() / 3 + 1;
    candidates
        .map(|candidate| (distance(word.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many letters have to be inserted, removed or replaced (Levenshtein).
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.iter().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        for (above, other) in row.iter_mut().skip(1).zip(to) {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = *above;
            left = replaced.min(left + 1).min(diagonal + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_near_and_other_words_are_not() {
        let names = ["timestamps", "sack", "ecn", "mtu", "loss"];
        let check = |word, expected| {
            assert_eq!(nearest(word, names.into_iter()), expected, "{word}");
        };
        check("timestamp", Some("timestamps"));
        check("timstamps", Some("timestamps"));
        check("sak", Some("sack"));
        check("mut", Some("mtu"));
        check("mtv", Some("mtu"));
        check("frobnicate", None);
    }

    #[test]
    fn a_distance_counts_letters() {
        assert_eq!(distance(b"", b""), 0);
        assert_eq!(distance(b"", b"abc"), 3);
        assert_eq!(distance(b"kitten", b"sitting"), 3);
    }
}
