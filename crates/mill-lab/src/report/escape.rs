//! Text that others wrote, made harmless: in HTML and SVG, in Markdown, in CSV, as a file's name.

use std::fmt::Write;

/// For text and for attributes in double quotes. Characters that XML 1.0 (2.2) does not have become U+FFFD, because one of them in a
/// tool's output would make a whole picture unreadable.
pub(super) fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(visible(other)),
        }
    }
    out
}

/// Markdown on one line: no markup of the text's own, no end of a table's cell, no HTML.
pub(super) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let characters: Vec<char> = text.trim().chars().collect();
    for (index, &character) in characters.iter().enumerate() {
        let word = |at: Option<&char>| at.is_some_and(|other| other.is_alphanumeric());
        let before = index.checked_sub(1).and_then(|at| characters.get(at));
        let inside = word(before) && word(characters.get(index + 1));
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\n' | '\r' | '\t' => out.push(' '),
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' => out.extend(['\\', character]),
            '_' if !inside => out.push_str("\\_"),
            '#' | '>' | '+' | '-' | '=' if index == 0 => out.extend(['\\', character]),
            '.' | ')' if starts_list(&characters, index) => out.extend(['\\', character]),
            other => out.push(visible(other)),
        }
    }
    out
}

/// A number with a dot at the beginning of a line would become a list.
fn starts_list(characters: &[char], index: usize) -> bool {
    index > 0
        && characters[..index].iter().all(char::is_ascii_digit)
        && characters.get(index + 1) == Some(&' ')
}

/// Markdown code within a line or a cell.
pub(super) fn code(text: &str) -> String {
    let text: String = text
        .chars()
        .map(|character| visible(if character == '\n' { ' ' } else { character }))
        .collect();
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    let text = text.replace('|', "\\|");
    // One blank each side is taken away again, and keeps a backtick of the text from joining the fence.
    let pad = if text.contains('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A Markdown block that its text can't end.
pub(super) fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    let mut out = format!("{fence}{language}\n");
    out.extend(text.chars().map(visible));
    if !text.ends_with('\n') {
        out.push('\n');
    }
    let _ = writeln!(out, "{fence}");
    out
}

/// A field of RFC 4180.
pub(crate) fn csv(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A part of a file's name: small ASCII letters, digits and single dashes.
pub(super) fn slug(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        if character.is_ascii_alphanumeric() {
            out.push(character);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
        if out.len() >= SLUG_MAX {
            break;
        }
    }
    let out = out.trim_end_matches('-');
    String::from(if out.is_empty() { "untitled" } else { out })
}

/// Characters of a slug; with a recipe's name before it a path stays well below the 255 bytes of most file systems.
const SLUG_MAX: usize = 48;

/// Control characters are shown as a replacement; ends of lines and tabs stay.
fn visible(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        control if control.is_control() => '\u{fffd}',
        other => other,
    }
}

fn longest_run(text: &str, of: char) -> usize {
    text.split(|character| character != of)
        .map(str::len)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_has_no_way_out_of_text_or_attribute() {
        let cases = [
            (
                "<script>alert('x')</script>",
                "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;",
            ),
            ("a & \"b\"", "a &amp; &quot;b&quot;"),
            ("\x1b[31mred\0", "\u{fffd}[31mred\u{fffd}"),
            ("two\nlines\tµ", "two\nlines\tµ"),
        ];
        for (input, expected) in cases {
            assert_eq!(markup(input), expected);
        }
    }

    #[test]
    fn markdown_says_what_the_text_says() {
        let cases = [
            ("a|b", "a\\|b"),
            ("net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_tw_reuse"),
            ("_malloc", "\\_malloc"),
            ("*bold* [x](y)", "\\*bold\\* \\[x\\](y)"),
            ("<b>", "&lt;b>"),
            ("# no heading", "\\# no heading"),
            ("12. no list", "12\\. no list"),
            ("1.5 of 2", "1.5 of 2"),
            ("two\nlines", "two lines"),
        ];
        for (input, expected) in cases {
            assert_eq!(markdown(input), expected);
        }
    }

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        assert_eq!(fenced("text", "a\n```\nb"), "````text\na\n```\nb\n````\n");
        assert_eq!(code("a`b|c"), "`` a`b\\|c ``");
        assert_eq!(code("plain"), "`plain`");
    }

    #[test]
    fn csv_quotes_only_where_it_has_to() {
        let cases = [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
        ];
        for (input, expected) in cases {
            assert_eq!(csv(input), expected);
        }
    }

    #[test]
    fn slugs_are_names_of_files_anywhere() {
        let cases = [
            ("Table 2: TPS, 25G", "table-2-tps-25g"),
            ("../../etc/passwd", "etc-passwd"),
            ("µ", "untitled"),
        ];
        for (input, expected) in cases {
            assert_eq!(slug(input), expected);
        }
        assert!(slug(&"long ".repeat(50)).len() <= SLUG_MAX);
    }
}
