//! "Did you mean": the nearest known name.

/// The candidate nearest to a word, if it is near enough: one edit for short words, up to three for long ones. The
/// first of equal ones is taken.
pub fn nearest<'a>(word: &[u8], candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.len() / 3).clamp(1, EDITS_MAX);
    candidates
        .filter(|candidate| candidate.len().abs_diff(word.len()) <= limit)
        .map(|candidate| (distance(word, candidate.as_bytes()), candidate))
        .filter(|(edits, _)| *edits <= limit)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// More edits make another word, not a typing error.
const EDITS_MAX: usize = 3;

/// Insertions, deletions, substitutions and swaps of adjacent bytes between two words.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let width = b.len() + 1;
    let mut before_last: Vec<usize> = vec![0; width];
    let mut last: Vec<usize> = (0..width).collect();
    let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
    for (i, &from) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(width);
        row.push(i + 1);
        for (j, &to) in b.iter().enumerate() {
            let changed = at(&last, j) + usize::from(from != to);
            let mut edits = changed.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped =
                i > 0 && j > 0 && a.get(i - 1) == Some(&to) && b.get(j - 1) == Some(&from);
            if swapped {
                edits = edits.min(at(&before_last, j - 1) + 1);
            }
            row.push(edits);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    at(&last, b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word_and_unknown_words_none() {
        let names = ["listen", "location", "server_name", "root", "gzip"];
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(
                nearest(word.as_bytes(), names.into_iter()),
                expected,
                "{word}"
            );
        };
        check("lisen", Some("listen"));
        check("lsiten", Some("listen"));
        check("serve_names", Some("server_name"));
        check("rot", Some("root"));
        check("ggzip", Some("gzip"));
        check("proxy_pass", None);
        check("", None);
    }
}
