//! Browsers that directives treat specially, identified by `User-Agent`.

use crate::request::Request;
use mill_http::field::KnownField;

/// The browser of a client: at most one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Browser {
    /// Internet Explorer, of whatever version.
    pub msie: bool,
    /// Internet Explorer of versions 4 to 6, but not version 6 with the second service pack.
    pub msie6: bool,
    pub chrome: bool,
    /// Apple's browser on its own system.
    pub safari: bool,
}

impl Browser {
    /// The browser that sent the request. An answer that depends on it is not pure.
    pub fn of(request: &Request) -> Self {
        let message = &request.message;
        let value = message.head.value(KnownField::UserAgent);
        value.map_or_else(Self::default, |value| Self::parse(value.of(&message.bytes)))
    }

    /// Reads the value of `User-Agent` as nginx does. Many browsers name others besides themselves, so the order of the
    /// tests matters.
    pub fn parse(user_agent: &[u8]) -> Self {
        let names = |word: &[u8]| find(user_agent, word).is_some();
        if names(b"Opera") {
            return Self::default();
        }
        // `MSIE `, two bytes of a version, and one more.
        if let Some(at) = find(user_agent, b"MSIE ")
            && let Some([major, dot, _, rest @ ..]) = user_agent.get(at + 5..)
        {
            let msie6 = match (major, dot) {
                (b'4' | b'5', b'.') => true,
                (b'6', b'.') => find(rest, b"SV1").is_none(),
                _ => false,
            };
            return Self {
                msie: true,
                msie6,
                ..Self::default()
            };
        }
        if names(b"Gecko/") {
            return Self::default();
        }
        let chrome = names(b"Chrome/");
        Self {
            chrome,
            safari: !chrome && names(b"Safari/") && names(b"Mac OS X"),
            ..Self::default()
        }
    }
}

/// nginx's `msie6`.
pub fn is_msie6(user_agent: &[u8]) -> bool {
    Browser::parse(user_agent).msie6
}

/// nginx's `safari`.
pub fn is_safari(user_agent: &[u8]) -> bool {
    Browser::parse(user_agent).safari
}

fn find(text: &[u8], word: &[u8]) -> Option<usize> {
    text.windows(word.len()).position(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Browser = Browser {
        msie: false,
        msie6: false,
        chrome: false,
        safari: false,
    };
    const MSIE: Browser = Browser { msie: true, ..NONE };
    const MSIE6: Browser = Browser {
        msie6: true,
        ..MSIE
    };
    const CHROME: Browser = Browser {
        chrome: true,
        ..NONE
    };
    const SAFARI: Browser = Browser {
        safari: true,
        ..NONE
    };

    fn check(user_agent: &str, expected: Browser) {
        let found = Browser::parse(user_agent.as_bytes());
        assert_eq!(found, expected, "{user_agent}");
        assert_eq!(is_msie6(user_agent.as_bytes()), expected.msie6);
        assert_eq!(is_safari(user_agent.as_bytes()), expected.safari);
    }

    #[test]
    fn internet_explorer_is_known_by_its_version() {
        check("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", MSIE6);
        check(
            "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)",
            MSIE,
        );
        check("Mozilla/4.0 (compatible; MSIE 5.5; Windows 98)", MSIE6);
        check("Mozilla/4.0 (compatible; MSIE 4.01; Windows 95)", MSIE6);
        check("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)", MSIE);
        check("MSIE 6.0", MSIE6);
        check("MSIE 6xy", MSIE);
        check("MSIE 6.", NONE);
        check("MSIE ", NONE);
        check("MSIE", NONE);
        check("msie 6.0", NONE);
        check("", NONE);
    }

    #[test]
    fn a_user_agent_that_names_several_browsers_is_the_first_in_order() {
        let mac = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15";
        check("Mozilla/4.0 (compatible; MSIE 6.0; X11) Opera 7.0", NONE);
        check("Opera Chrome/1", NONE);
        check("Chrome/1 MSIE 7.0", MSIE);
        check("Mozilla/5.0 (X11) Gecko/20100101 Firefox/115.0", NONE);
        check("Gecko/1 Chrome/1", NONE);
        check("Chrome", NONE);
        check(mac, NONE);
        check(
            &format!("{mac} (KHTML, like Gecko) Version/16.1 Safari/605.1.15"),
            SAFARI,
        );
        check(
            &format!("{mac} (KHTML, like Gecko) Chrome/108.0 Safari/537.36"),
            CHROME,
        );
        check(
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537 Version/5.1 Safari/534",
            NONE,
        );
    }
}
