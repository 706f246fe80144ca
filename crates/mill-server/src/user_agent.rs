//! Browsers that the configuration treats specially, by what they call themselves.

/// nginx's `msie6`: Microsoft's browser of versions 4 to 6, but not version 6 with the second service pack.
pub fn is_msie6(user_agent: &[u8]) -> bool {
    let Some(at) = find(user_agent, b"MSIE ") else {
        return false;
    };
    match user_agent.get(at + 5..) {
        Some([b'4' | b'5', b'.', ..]) => true,
        Some([b'6', b'.', rest @ ..]) => find(rest, b"SV1").is_none(),
        _ => false,
    }
}

/// nginx's `safari`: Apple's browser on its own system, and none of those that call themselves so, too.
pub fn is_safari(user_agent: &[u8]) -> bool {
    let has = |word: &[u8]| find(user_agent, word).is_some();
    let is_another = [&b"MSIE "[..], b"Opera", b"Gecko/", b"Chrome/"]
        .into_iter()
        .any(has);
    !is_another && has(b"Safari/") && has(b"Mac OS X")
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_browsers_are_known_by_their_version() {
        let check = |user_agent: &str, expected: bool| {
            assert_eq!(is_msie6(user_agent.as_bytes()), expected, "{user_agent}");
        };
        check("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", true);
        check(
            "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)",
            false,
        );
        check("Mozilla/4.0 (compatible; MSIE 5.5; Windows 98)", true);
        check("Mozilla/4.0 (compatible; MSIE 4.01; Windows 95)", true);
        check("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)", false);
        check("Mozilla/5.0 (X11; Linux x86_64) Firefox/115.0", false);
        check("MSIE ", false);
        check("MSIE 6", false);
    }

    #[test]
    fn safari_is_known_by_its_system_and_by_what_it_is_not() {
        let check = |user_agent: &str, expected: bool| {
            assert_eq!(is_safari(user_agent.as_bytes()), expected, "{user_agent}");
        };
        let mac = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15";
        check(
            &format!("{mac} (KHTML, like Gecko) Version/16.1 Safari/605.1.15"),
            true,
        );
        check(
            &format!("{mac} (KHTML, like Gecko) Chrome/108.0 Safari/537.36"),
            false,
        );
        check(
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537 Version/5.1 Safari/534",
            false,
        );
        check(mac, false);
    }
}
