//! Names of run folders: when, what, and four letters that keep two of a minute apart.

use super::DateTime;

/// `2026-11-21T0736-nginx-jemalloc-k3f9`: the minute in UTC, the recipe, and 20 random bits. Sorting names sorts by time.
pub fn run_id(started_ms: u64, recipe: &str, random: u64) -> String {
    let time = DateTime::of_unix_ms(started_ms);
    let letters: String = (0..SUFFIX_LETTERS)
        .map(|place| {
            let bits = (random >> (5 * place)) & 31;
            // Five bits are below the alphabet's 32 letters.
            char::from(ALPHABET[usize::try_from(bits).unwrap_or(0)])
        })
        .collect();
    format!(
        "{:04}-{:02}-{:02}T{:02}{:02}-{}-{letters}",
        time.year,
        time.month,
        time.day,
        time.hour,
        time.minute,
        file_word(recipe)
    )
}

/// Whether a name is safe for a folder below `runs/`: it cannot leave it.
pub(super) fn is_folder_name(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('.')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c))
}

/// A recipe of one's own may be called anything; a folder may not.
fn file_word(recipe: &str) -> String {
    let stem = recipe.rsplit('/').next().unwrap_or(recipe);
    let stem = stem.strip_suffix(".toml").unwrap_or(stem);
    let word: String = stem
        .chars()
        .take(RECIPE_LETTERS_MAX)
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    let word = word.trim_matches('-');
    String::from(if word.is_empty() { "recipe" } else { word })
}

/// Letters after the recipe: 32⁴ is a million, and two runs begin in the same minute at most a few times a year.
const SUFFIX_LETTERS: u32 = 4;

/// Letters of the recipe's name that a folder's name has; with the rest far below the 255 bytes of a file name.
const RECIPE_LETTERS_MAX: usize = 60;

/// Base 32 without i, l, o and u: what is read aloud is written the same.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_when_and_what() {
        let cases = [
            (
                1_795_246_560_000,
                "nginx-jemalloc",
                0,
                "2026-11-21T0736-nginx-jemalloc-0000",
            ),
            (
                1_795_246_619_999,
                "nginx-jemalloc",
                0b1_00001,
                "2026-11-21T0736-nginx-jemalloc-1100",
            ),
            (
                0,
                "/srv/lab/my recipe.toml",
                u64::MAX,
                "1970-01-01T0000-my-recipe-zzzz",
            ),
            (951_782_400_000, "…", 31, "2000-02-29T0000-recipe-z000"),
        ];
        for (started_ms, recipe, random, expected) in cases {
            let id = run_id(started_ms, recipe, random);
            assert_eq!(id, expected);
            assert!(is_folder_name(&id), "{id}");
        }
    }

    #[test]
    fn a_word_that_leaves_the_store_is_no_folder() {
        for word in ["", ".", "..", "../x", "a/b", ".hidden", "a b"] {
            assert!(!is_folder_name(word), "{word}");
        }
    }
}
