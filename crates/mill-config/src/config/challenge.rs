//! `challenge_cookie`: clients show that they keep cookies, or run scripts, before they are served.

use crate::Text;

/// The cookie without which a client is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeCookie {
    /// Its name.
    pub name: Text,
    /// What stands behind its value in `Set-Cookie`: `; Path=/`.
    pub attributes: Text,
    /// `max_misses=`: requests of one connection without it in a second; 0 is no limit.
    pub misses_max: u32,
    /// `lifetime=` in seconds; 0 has no end.
    pub lifetime_s: u64,
}

/// `challenge_script`: a page in the place of the redirect, whose script asks again after a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeScript {
    /// The page.
    pub page: Vec<PagePart>,
    /// `delay_min=`: no client may be back sooner.
    pub delay_min_ms: u32,
    /// `delay_range=`: each client waits up to so much longer, as its cookie says.
    pub delay_range_ms: u32,
    /// Status of the page.
    pub status: u16,
}

/// A part of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePart {
    /// Bytes as they are.
    Text(Text),
    /// The cookie's name.
    CookieName,
    /// `delay_min=` in milliseconds.
    DelayMin,
    /// `delay_range=` in milliseconds.
    DelayRange,
    /// How long this client waits, in milliseconds.
    Delay,
}

impl ChallengeScript {
    /// Milliseconds that the client waits whose cookie was made at this time, in milliseconds since 1970.
    pub fn delay_ms(&self, made_ms: u64) -> u64 {
        let range = u64::from(self.delay_range_ms).max(1);
        u64::from(self.delay_min_ms) + made_ms % range
    }
}

/// The page of a template: what stands in `[% … %]` is filled in, with the names that Tempesta FW's templates have.
pub fn page(template: &[u8]) -> Vec<PagePart> {
    let mut parts = Vec::new();
    let mut text = Vec::new();
    let mut rest = template;
    while let Some((&byte, after)) = rest.split_first() {
        if let Some((part, after)) = place(rest) {
            if !text.is_empty() {
                parts.push(PagePart::Text(Text::from(&*text)));
                text.clear();
            }
            parts.push(part);
            rest = after;
        } else {
            text.push(byte);
            rest = after;
        }
    }
    if !text.is_empty() {
        parts.push(PagePart::Text(Text::from(&*text)));
    }
    parts
}

/// A place that is filled in, if the text begins with one, and the text behind it.
fn place(text: &[u8]) -> Option<(PagePart, &[u8])> {
    let inner = text.strip_prefix(b"[%")?;
    let end = inner.windows(2).position(|window| window == b"%]")?;
    let (name, after) = inner.split_at(end);
    let part = match name.trim_ascii() {
        b"STICKY_NAME" => PagePart::CookieName,
        b"DELAY_MIN" => PagePart::DelayMin,
        b"DELAY_RANGE" => PagePart::DelayRange,
        b"DELAY" => PagePart::Delay,
        _ => return None,
    };
    Some((part, after.get(2..)?))
}

/// The page where none is named. Its script asks again, with the cookie that has come with it.
pub const PAGE_DEFAULT: &[u8] = b"<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n\
<title>One moment</title>\n</head>\n<body>\n<p id=\"state\">Your browser is being checked. This page goes on by itself.</p>\n\
<noscript><p>Please enable JavaScript and load this page again.</p></noscript>\n<script>\n\
if (navigator.cookieEnabled) {\n    setTimeout(function () { location.reload(); }, [% DELAY %]);\n} else {\n    \
document.getElementById(\"state\").textContent = \"Please enable cookies and load this page again.\";\n}\n\
</script>\n</body>\n</html>\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_places_of_a_page_are_filled_in_and_others_stay() {
        let text = |text: &str| PagePart::Text(Text::from(text.as_bytes()));
        let check = |template: &str, expected: &[PagePart]| {
            assert_eq!(page(template.as_bytes()), expected, "{template}");
        };
        check("", &[]);
        check("a", &[text("a")]);
        check("a [% DELAY %]b", &[text("a "), PagePart::Delay, text("b")]);
        check(
            "[%DELAY_MIN%][% DELAY_RANGE %][% STICKY_NAME %]",
            &[
                PagePart::DelayMin,
                PagePart::DelayRange,
                PagePart::CookieName,
            ],
        );
        check("[% OTHER %][%", &[text("[% OTHER %][%")]);
        check(
            "[% OTHER [% DELAY %]",
            &[text("[% OTHER "), PagePart::Delay],
        );
        check("[% DELAY %", &[text("[% DELAY %")]);
        assert!(page(PAGE_DEFAULT).contains(&PagePart::Delay));
    }

    #[test]
    fn a_delay_lies_in_its_range() {
        let script = ChallengeScript {
            page: Vec::new(),
            delay_min_ms: 1000,
            delay_range_ms: 500,
            status: 503,
        };
        for (made_ms, expected) in [(0, 1000), (499, 1499), (500, 1000), (u64::MAX, 1115)] {
            assert_eq!(script.delay_ms(made_ms), expected, "{made_ms}");
        }
    }
}
