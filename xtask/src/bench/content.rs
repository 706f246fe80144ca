//! The content of the floor's responses: of any size, the same each time.

/// Text that compresses about as well as a page does: words of a small vocabulary, in an order that
/// does not repeat.
pub(super) fn body(bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "<p>", "</p>\n", "mill ", "stream ", "wheel ", "water ", "stone ", "grain ", "flour ",
        "the ", "of ", "turns ", "<em>", "</em> ", "quick ", "river ",
    ];
    // Marsaglia's xorshift with a constant seed: every run serves the same bytes.
    let mut state: u32 = 2_463_534_242;
    let mut body = Vec::with_capacity(bytes + 16);
    while body.len() < bytes {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let word = usize::try_from(state % 16)
            .ok()
            .and_then(|index| WORDS.get(index));
        body.extend_from_slice(word.copied().unwrap_or_default().as_bytes());
    }
    body.truncate(bytes);
    body
}

#[cfg(test)]
mod tests {
    use super::body;

    #[test]
    fn a_body_has_its_size_and_is_the_same_each_time() {
        for bytes in [0, 1, 600, 100_000] {
            assert_eq!(body(bytes).len(), bytes);
            assert_eq!(body(bytes), body(bytes));
        }
    }
}
