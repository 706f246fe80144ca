//! Words of a command line as a recipe writes it: quotes group, a backslash takes the next character, nothing else is special.

/// Splits it; an open quote is an error with a message.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("the quote {open} is not closed in: {text}"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(words(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn quotes_group_and_vanish() {
        check(
            "-H 'Connection: close' -c 8",
            &["-H", "Connection: close", "-c", "8"],
        );
        check(r#"-H "a 'b'"  '' x\ y"#, &["-H", "a 'b'", "", "x y"]);
        check("  ", &[]);
    }

    #[test]
    fn an_open_quote_is_an_error() {
        assert!(words("wrk 'oh").is_err());
    }
}
