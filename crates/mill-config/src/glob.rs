//! Patterns of `include`: glob(3) as a pure function.

/// Whether a path matches a pattern: `*` and `?` stop at slashes and do not match a dot that
/// begins a name, `[a-z]` and `[!a-z]` are classes, a backslash takes the next byte literally.
pub fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let mut pattern = pattern.split(|&byte| byte == b'/');
    let mut path = path.split(|&byte| byte == b'/');
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(pattern), Some(name)) => {
                let hidden = name.first() == Some(&b'.');
                if hidden && pattern.first() != Some(&b'.') || !matches_name(pattern, name) {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

/// Matches one path component, by backtracking to the last star only: linear in both lengths for each star.
fn matches_name(mut pattern: &[u8], mut name: &[u8]) -> bool {
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        match pattern.split_first() {
            Some((b'*', rest)) => {
                star = Some((rest, name));
                pattern = rest;
                continue;
            }
            None if name.is_empty() => return true,
            Some(_) => {
                if let Some((&byte, after)) = name.split_first()
                    && let Some(rest) = matches_byte(pattern, byte)
                {
                    (pattern, name) = (rest, after);
                    continue;
                }
            }
            None => {}
        }
        match star {
            Some((rest, [_, retry @ ..])) => {
                star = Some((rest, retry));
                (pattern, name) = (rest, retry);
            }
            _ => return false,
        }
    }
}

/// The rest of the pattern if its first element matches the byte.
fn matches_byte(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'[', class @ ..] if class.iter().skip(1).any(|&end| end == b']') => {
            matches_class(class, byte)
        }
        [b'\\', literal, rest @ ..] => (*literal == byte).then_some(rest),
        [literal, rest @ ..] => (*literal == byte).then_some(rest),
        [] => None,
    }
}

fn matches_class(class: &[u8], byte: u8) -> Option<&[u8]> {
    let (negated, mut rest) = match class {
        [b'!' | b'^', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut found = false;
    let mut first = true;
    loop {
        match rest {
            [b']', after @ ..] if !first => return (found != negated).then_some(after),
            [low, b'-', high, after @ ..] if *high != b']' => {
                found |= (*low..=*high).contains(&byte);
                rest = after;
            }
            [one, after @ ..] => {
                found |= *one == byte;
                rest = after;
            }
            [] => return None,
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_glob_does() {
        let check = |pattern: &str, path: &str, expected: bool| {
            assert_eq!(
                matches(pattern.as_bytes(), path.as_bytes()),
                expected,
                "{pattern} {path}"
            );
        };
        check("/etc/*.conf", "/etc/a.conf", true);
        check("/etc/*.conf", "/etc/.a.conf", false);
        check("/etc/*.conf", "/etc/sub/a.conf", false);
        check("/etc/*/a.conf", "/etc/sub/a.conf", true);
        check("/e?c/*", "/etc/x", true);
        check("/[a-f]tc/*", "/etc/x", true);
        check("/[!a-f]tc/*", "/etc/x", false);
        check("/a*b*c", "/axxbyyc", true);
        check("/a*b*c", "/axxbyy", false);
        check("/[]", "/[]", true);
        check("/\\*", "/*", true);
        check("/\\*", "/a", false);
        check("*", "", true);
    }
}
