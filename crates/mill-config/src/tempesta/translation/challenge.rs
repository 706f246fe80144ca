//! Cookies without which no request is served: `challenge_cookie` and its like.

use super::Translator;
use crate::tempesta::site::{Site, Sticky, Vhost};
use crate::tempesta::writing::Phrase;

/// The lifetime of cookies where none is written: Tempesta FW's largest number (fw/http_sess_conf.c).
const MAX_AGE_DEFAULT: &str = "Max-Age=4294967295";

/// Whether some vhost enforces its cookie: what becomes of clients without it is said by `frang`.
pub(super) fn is_enforced(site: &Site) -> bool {
    let mut sticky = site.vhosts.iter().filter_map(|vhost| vhost.sticky.as_ref());
    sticky.any(|sticky| sticky.misses.is_some())
}

impl Translator<'_> {
    /// What the clients of a vhost must show.
    pub(super) fn challenge(&mut self, vhost: &Vhost) {
        let Some(sticky) = &vhost.sticky else {
            return;
        };
        let (Some((name, _, origin)), Some(misses)) = (&sticky.cookie, sticky.misses) else {
            return;
        };
        let mut phrase = Phrase::new(origin, "challenge_cookie")
            .word(name.clone())
            .word(format!("max_misses={misses}"));
        if sticky.lifetime > 0 {
            phrase = phrase.word(format!("lifetime={}s", sticky.lifetime));
        }
        self.writer.end(attributes(phrase, sticky));
        if let Some(secret) = &sticky.secret {
            let phrase = Phrase::new(&secret.origin, "challenge_secret");
            self.writer.end(phrase.at(secret.bytes.clone(), secret));
        }
        let Some(script) = &sticky.script else {
            return;
        };
        let mut phrase = Phrase::new(&script.name.origin, "challenge_script")
            .word(format!("delay_min={}ms", script.delay_min_ms))
            .word(format!("delay_range={}ms", script.delay_range_ms));
        if let Some(status) = script.status {
            phrase = phrase.word(format!("status={status}"));
        }
        if let Some(page) = &script.page {
            phrase = phrase.at([b"page=", &page.bytes[..]].concat(), page);
        }
        self.writer.end(phrase);
    }
}

/// `cookie_options`, whatever they are, as Tempesta FW sends them.
fn attributes(mut phrase: Phrase, sticky: &Sticky) -> Phrase {
    let mut is_bounded = sticky.lifetime > 0;
    for (key, value) in &sticky.options {
        is_bounded |= key.is("max-age") || key.is("expires");
        let mut word = [b"attribute=", &key.bytes[..]].concat();
        if let Some(value) = value {
            word.push(b'=');
            word.extend_from_slice(&value.bytes);
        }
        phrase = phrase.at(word, key);
    }
    match is_bounded {
        true => phrase,
        false => phrase.word(format!("attribute={MAX_AGE_DEFAULT}")),
    }
}
