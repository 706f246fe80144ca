//! Rust source with comments and literals blanked out, so that a rule sees only code.

/// The code of `source`: every octet of a comment, a string or a character literal has become a
/// space, line feeds stay, and so do all offsets.
///
/// A lexer of the few forms that hide text. It needs no more of the language, because its input has been through the
/// compiler.
pub(crate) fn code_of(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_len(rest, before);
        let taken = if hidden == 0 {
            first.len_utf8()
        } else {
            hidden
        };
        let (text, after) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        if hidden == 0 {
            code.push_str(text);
        } else {
            code.extend(text.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        }
        before = text.chars().next_back();
        rest = after;
    }
    code
}

/// The code without any white space: `# ! [ no_std ]` and `#![no_std]` are the same.
pub(crate) fn squeezed(source: &str) -> String {
    code_of(source).split_whitespace().collect()
}

/// How many octets at the start of `rest` are a comment or a literal. `before` is the character before it.
fn hidden_len(rest: &str, before: Option<char>) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment_len(rest);
    }
    if rest.starts_with('"') {
        return string_len(rest);
    }
    if rest.starts_with('\'') {
        return char_len(rest);
    }
    // An `r` that ends a longer name begins no raw string.
    let in_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if in_name && before != Some('b') && before != Some('c') {
        0
    } else {
        raw_string_len(rest)
    }
}

/// Block comments nest.
fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn string_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal; 0 for a lifetime or a label.
fn char_len(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            // The escaped character itself may be a quote.
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some(_) => chars
            .next()
            .filter(|(_, c)| *c == '\'')
            .map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// A raw string without its optional `b` or `c`; 0 for a name, `r#type` among them.
fn raw_string_len(rest: &str) -> usize {
    let Some(after_r) = rest.strip_prefix('r') else {
        return 0;
    };
    let hashes = after_r.bytes().take_while(|b| *b == b'#').count();
    let Some(content) = after_r
        .get(hashes..)
        .and_then(|tail| tail.strip_prefix('"'))
    else {
        return 0;
    };
    let end = format!("\"{}", "#".repeat(hashes));
    let start_len = 1 + hashes + 1;
    content
        .find(&end)
        .map_or(rest.len(), |at| start_len + at + end.len())
}

#[cfg(test)]
mod tests {
    use super::{code_of, squeezed};

    fn check(source: &str, expected: &str) {
        let code = code_of(source);
        assert_eq!(code.len(), source.len(), "offsets moved in {source:?}");
        assert_eq!(
            code.split_whitespace().collect::<Vec<_>>().join(" "),
            expected,
            "{source:?}"
        );
    }

    #[test]
    fn comments_vanish_and_the_lines_stay() {
        check("a // mod b;\nc", "a c");
        check("a /* mod b; /* c */ mod d; */ e", "a e");
        check("a /* never closed", "a");
        check("//! mod b;", "");
        assert_eq!(code_of("a // é\n/* \n */b"), "a      \n   \n   b");
    }

    #[test]
    fn literals_vanish() {
        check(r#"a "mod b;" c"#, "a c");
        check(r#"a "\" // \\" c"#, "a c");
        check(r##"a r"\" b r#"mod "c";"# d"##, "a b d");
        check(r#"a br"\" b b"\"" c"#, "a b b b c");
        check(r"a '\'' b '\u{1F600}' c '/' d '😀' e", "a b c d e");
        check(r#"a '"' b '"' c"#, "a b c");
    }

    #[test]
    fn lifetimes_labels_and_raw_names_stay() {
        check("fn f<'a>(b: &'a str) {}", "fn f<'a>(b: &'a str) {}");
        check("'outer: loop {}", "'outer: loop {}");
        check("let r#type = bar\"x\";", "let r#type = bar ;");
    }

    #[test]
    fn squeezed_code_has_no_white_space() {
        assert_eq!(squeezed("# ! [ no_std ] // why\n"), "#![no_std]");
    }
}
