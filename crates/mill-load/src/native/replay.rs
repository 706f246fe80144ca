//! A file of requests: one a line, `METHOD TARGET` or only the target; the rest of a line is ignored.

/// One request of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) method: String,
    pub(crate) target: String,
}

/// Reads all requests. Empty lines and lines that begin with `#` are skipped; an error names the line.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Line>, String> {
    let text = std::str::from_utf8(text).map_err(|error| {
        let before = text.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line} is not UTF-8; percent-encode the target")
    })?;
    let lines: Vec<Line> = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(number, line)| parse_line(line).map_err(|why| format!("line {number}: {why}")))
        .collect::<Result<_, _>>()?;
    if lines.is_empty() {
        return Err(String::from("there is no request in it"));
    }
    Ok(lines)
}

fn parse_line(line: &str) -> Result<Line, String> {
    let mut words = line.split_ascii_whitespace();
    let first = words.next().unwrap_or_default();
    let (method, target) = match words.next() {
        None => ("GET", first),
        Some(_) if first.starts_with('/') => ("GET", first),
        Some(second) => (first, second),
    };
    if !method
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
    {
        return Err(format!("\"{method}\" is no method, write it in capitals"));
    }
    if !target.starts_with('/') && target != "*" {
        return Err(format!(
            "the target \"{target}\" does not begin with a slash"
        ));
    }
    if target.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(String::from("the target has a control character"));
    }
    Ok(Line {
        method: String::from(method),
        target: String::from(target),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_request() {
        let text = b"# a comment\n\nGET /a\r\n/b?c\n  POST /d HTTP/1.1\n/e trailing\nOPTIONS *\n";
        let lines: Vec<String> = parse(text)
            .unwrap()
            .into_iter()
            .map(|line| format!("{} {}", line.method, line.target))
            .collect();
        assert_eq!(
            lines,
            ["GET /a", "GET /b?c", "POST /d", "GET /e", "OPTIONS *"]
        );
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for (text, why) in [
            (&b""[..], "there is no request in it"),
            (b"# only\n", "there is no request in it"),
            (b"/a\nget /b\n", "line 2: \"get\" is no method"),
            (b"/a\n\nGET b\n", "line 3: the target \"b\" does not begin"),
            (b"/a\n/\xFF\n", "line 2 is not UTF-8"),
            (b"/a\x01", "line 1: the target has a control character"),
        ] {
            let refusal = parse(text).unwrap_err();
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
