//! `frang_limits` as `frang`, whose entries have the same names.

use super::{CONTENT_BYTES_DEFAULT, Translator, challenge};
use crate::tempesta::policies::Policies;
use crate::tempesta::site::Limit;
use crate::tempesta::writing::Phrase;

/// What is in force where a `frang_limits` does not say it (fw/vhost.c); all others are 0 or off.
const DEFAULTS: [(&str, &str); 5] = [
    ("concurrent_tcp_connections", "1000"),
    ("http_header_cnt", "50"),
    ("http_strict_host_checking", "on"),
    ("http_method_override_allowed", "off"),
    ("http_methods", "get post head"),
];

/// What lets every request pass: what hands requests on is no place of theirs.
const NONE: [&str; 8] = [
    "http_methods all",
    "http_uri_len 0",
    "http_body_len 0",
    "http_strict_host_checking off",
    "http_ct_required off",
    "http_ct_vals all",
    "http_method_override_allowed on",
    "http_resp_code_block off",
];

impl Translator<'_> {
    /// The limits of all clients, and those of requests that vhosts and locations do not say otherwise.
    pub(super) fn limits(&mut self) {
        let site = self.site;
        let origin = &site.origin;
        let known = &site.client.known;
        if !site.has_limits {
            if let Some((_, name)) = known {
                let why = "without \"frang_limits\" no client is counted";
                self.notes.without_effect(name, why);
            }
            if !site.entries.is_empty() || challenge::is_enforced(site) {
                self.writer.open(Phrase::new(origin, "frang"));
                self.kinds();
                self.writer.close();
            }
            return;
        }
        let writer = &mut self.writer;
        writer.open(Phrase::new(origin, "frang"));
        let given = &site.limits.0;
        let is_given = |name: &str| given.iter().any(|limit| limit.name == name);
        let content = CONTENT_BYTES_DEFAULT.to_string();
        let defaults = DEFAULTS.into_iter();
        for (name, words) in defaults.chain([("http_body_len", content.as_str())]) {
            if !is_given(name) {
                writer.say(origin, &format!("{name} {words}"));
            }
        }
        for limit in given {
            writer.end(phrase(limit));
        }
        if let Some((clients, _)) = known {
            writer.say(&clients.origin, &format!("clients {}", clients.value));
        }
        self.kinds();
        self.writer.close();
    }

    /// What stands elsewhere in Tempesta FW's language, and what becomes of clients.
    fn kinds(&mut self) {
        let site = self.site;
        for limit in &site.entries {
            self.writer.end(phrase(limit));
        }
        let action = match site.attack_replies {
            true => "action reply",
            false => "action drop",
        };
        self.writer.say(&site.origin, action);
    }

    /// What a vhost or a location says of its own.
    pub(super) fn inner_limits(&mut self, policies: &Policies<'_>) {
        let limits = policies.limits();
        let Some(first) = limits.first() else {
            return;
        };
        self.writer.open(Phrase::new(&first.origin, "frang"));
        for limit in limits {
            self.writer.end(phrase(limit));
        }
        self.writer.close();
    }

    /// Where a request is only handed on to its vhost.
    pub(super) fn no_limits(&mut self) {
        if !self.site.has_limits {
            return;
        }
        let origin = &self.site.origin;
        self.writer.open(Phrase::new(origin, "frang"));
        for words in NONE {
            self.writer.say(origin, words);
        }
        self.writer.close();
    }
}

fn phrase(limit: &Limit) -> Phrase {
    let phrase = Phrase::new(&limit.origin, limit.name);
    let words = limit.words.iter();
    words.fold(phrase, |phrase, word| phrase.word(word.as_slice()))
}
