//! The cache: one zone in memory, and which paths go by it.

use super::Translator;
use crate::resolve::Applied;
use crate::resolve::draft::Origin;
use crate::tempesta::lexer::Term;
use crate::tempesta::ordering::{self, Order, Row};
use crate::tempesta::policies::Policies as Levels;
use crate::tempesta::routing::{PURGE_SOURCE, State};
use crate::tempesta::value;
use crate::tempesta::writing::Phrase;

/// The zone's name.
const ZONE: &str = "tempesta";

/// Where what is kept beyond memory would be; nothing is, as with Tempesta FW.
const PATH: &str = "/var/cache/millstream/tempesta";

/// How long an answer stays that is not asked for: only the size of the cache takes answers out of Tempesta FW's.
const INACTIVE: &str = "inactive=365d";

/// Memory of the index for each byte of the cache: one for sixteen.
const INDEX_SHARE: u64 = 16;

/// Statuses that are kept without a word about their freshness (fw/cache.c).
const STATUSES: &str = "200 203 204 300 301 404 405 410 414 501";

/// Variables that say which paths are not cached.
#[derive(Default)]
pub(super) struct Policies {
    tables: Vec<(Origin, String, Vec<Row<String>>, String)>,
    /// Some way of requests uses the cache.
    is_used: bool,
}

/// Whether the cache is used.
enum Answer {
    Always,
    Never,
    /// The variable that is not empty where it is not.
    Unless(String),
}

impl Translator<'_> {
    /// The cache of one way of requests.
    pub(super) fn cached(&mut self, levels: &Levels<'_>, state: State) -> Applied {
        let cache = &self.site.cache;
        if !cache.is_on || state.no_cache {
            return Ok(());
        }
        let rules = levels.cache();
        let Some(first) = rules.first() else {
            return Ok(());
        };
        let origin = first.path.text.origin.clone();
        let unless = match self.answer(levels, &origin)? {
            Answer::Never => return Ok(()),
            Answer::Always => None,
            Answer::Unless(variable) => Some(variable),
        };
        self.cache.is_used = true;
        self.writer.say(&origin, &format!("proxy_cache {ZONE}"));
        for name in ["proxy_cache_bypass", "proxy_no_cache"] {
            if let Some(variable) = &unless {
                self.writer
                    .end(Phrase::new(&origin, name).word(variable.as_str()));
            }
        }
        if let Some(ttl) = state.ttl {
            let phrase = Phrase::new(&origin, "proxy_cache_valid").word_list(STATUSES);
            self.writer.end(phrase.word(format!("{ttl}s")));
        }
        self.stale(levels);
        self.ignored(levels);
        Ok(())
    }

    /// The rules as maps of the path: the first one that matches counts, and without one nothing is cached.
    fn answer(&mut self, levels: &Levels<'_>, origin: &Origin) -> Applied<Answer> {
        let word = |bypasses: bool| String::from(if bypasses { "1" } else { "" });
        let items = levels.cache().into_iter();
        let items = items.map(|rule| (&rule.path, word(rule.bypasses)));
        let Order { runs, rest } = ordering::order(items.collect())?;
        let mut default = rest.unwrap_or_else(|| word(true));
        for rows in runs.into_iter().rev() {
            if rows.iter().all(|(_, value, _)| *value == default) {
                continue;
            }
            let same = |known: &&(Origin, String, Vec<Row<String>>, String)| {
                let keys = |rows: &[Row<String>]| -> Vec<(Vec<u8>, String)> {
                    let rows = rows.iter();
                    rows.map(|(key, value, _)| (key.clone(), value.clone()))
                        .collect()
                };
                known.3 == default && keys(&known.2) == keys(&rows)
            };
            if let Some((_, variable, ..)) = self.cache.tables.iter().find(same) {
                default.clone_from(variable);
                continue;
            }
            let variable = format!("$tempesta_uncached_{}", self.cache.tables.len() + 1);
            self.cache
                .tables
                .push((origin.clone(), variable.clone(), rows, default));
            default = variable;
        }
        Ok(match default.as_str() {
            "" => Answer::Always,
            "1" => Answer::Never,
            _ => Answer::Unless(default),
        })
    }

    fn stale(&mut self, levels: &Levels<'_>) {
        let words = levels.list(|policy| &policy.stale);
        let mut phrase = None;
        for word in words {
            let Ok((first, last)) = value::statuses(word) else {
                continue;
            };
            let mut found = phrase
                .take()
                .unwrap_or_else(|| Phrase::new(&word.origin, "proxy_cache_use_stale"));
            for status in first..=last {
                // What Tempesta FW answers with by itself is a failure.
                match status {
                    502 => found = found.at("error", word),
                    504 => found = found.at("timeout", word),
                    _ => {}
                }
                found = found.at(format!("http_{status}"), word);
            }
            phrase = Some(found);
        }
        if let Some(phrase) = phrase {
            self.writer.end(phrase);
        }
    }

    fn ignored(&mut self, levels: &Levels<'_>) {
        let hidden: &[Term] = levels.list(|policy| &policy.hidden);
        for name in hidden {
            let phrase = Phrase::new(&name.origin, "proxy_hide_header");
            self.writer.end(phrase.at(name.bytes.clone(), name));
        }
        let cookies = hidden.iter().find(|name| name.is("set-cookie"));
        if let Some((origin, names)) = levels.ignores() {
            let phrase = Phrase::new(origin, "proxy_ignore_headers");
            let words = names.iter().map(|name| format!("Cache-Control={name}"));
            self.writer
                .end(words.fold(phrase, |phrase, word| phrase.word(word)));
        }
        // Without the field the answer may be for all.
        if let Some(name) = cookies {
            self.writer
                .say(&name.origin, "proxy_ignore_headers Set-Cookie");
        }
    }

    /// What the cache has at the level of all servers.
    pub(super) fn cache_level(&mut self) {
        if !self.cache.is_used {
            return;
        }
        let cache = &self.site.cache;
        let origin = cache.origin.as_ref().unwrap_or(&self.site.origin);
        let writer = &mut self.writer;
        let index = cache.size_bytes / INDEX_SHARE;
        let phrase = Phrase::new(origin, "proxy_cache_path")
            .word(PATH)
            .word(format!("keys_zone={ZONE}:{index}"))
            .word(format!("memory={}", cache.size_bytes))
            .word(INACTIVE)
            .word("disk=off");
        writer.end(phrase);
        // GET and HEAD always are, and have one answer.
        let is_other = |method: &&Term| !method.is("GET") && !method.is("HEAD");
        let others: Vec<&Term> = cache.methods.iter().filter(is_other).collect();
        if !others.is_empty() {
            let names = others
                .iter()
                .map(|method| method.display().to_ascii_uppercase());
            let names: Vec<String> = names.collect();
            let phrase = Phrase::new(origin, "proxy_cache_methods");
            writer.end(phrase.word_list(&names.join(" ")));
            writer.open(Phrase::new(origin, "map $request_method $tempesta_key"));
            for name in names {
                writer.end(Phrase::new(origin, &name).word(format!("{name}:")));
            }
            writer.end(Phrase::new(origin, "default").word(""));
            writer.close();
            writer.say(origin, "proxy_cache_key $tempesta_key$host$request_uri");
        } else {
            writer.say(origin, "proxy_cache_key $host$request_uri");
        }
        let valid = Phrase::new(origin, "proxy_cache_valid").word_list(STATUSES);
        writer.end(valid.word(format!("{}s", cache.ttl)));
        for (origin, variable, rows, default) in std::mem::take(&mut self.cache.tables) {
            let head = Phrase::new(&origin, "map $request_uri").word(variable);
            writer.open(head);
            for (key, value, at) in rows {
                writer.end(Phrase::new(&at, "").word(key).word(value));
            }
            writer.end(Phrase::new(&origin, "default").word(default));
            writer.close();
        }
        if let Some(purge) = &cache.purge {
            writer.open(
                Phrase::new(purge, "map")
                    .word(PURGE_SOURCE)
                    .word("$tempesta_purge"),
            );
            writer.say(purge, "PURGE:1 1");
            writer.say(purge, "default 0");
            writer.close();
            writer.say(purge, "proxy_cache_purge $tempesta_purge");
        }
    }
}
