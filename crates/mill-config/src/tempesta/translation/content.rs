//! What answers requests that go one way: the content of a location.

use super::groups::{Use, upstream_name, use_of};
use super::{Translator, seconds};
use crate::resolve::Applied;
use crate::resolve::draft::Origin;
use crate::tempesta::lexer::Term;
use crate::tempesta::policies;
use crate::tempesta::routing::{Goal, State};
use crate::tempesta::site::{Action, Group};
use crate::tempesta::writing::Phrase;

impl Translator<'_> {
    /// Writes what a location says.
    pub(super) fn content(&mut self, goal: &Goal) -> Applied {
        let site = self.site;
        match *goal {
            Goal::Drop => self.writer.say(&site.origin, "return 444"),
            Goal::Block => {
                // An attack is dropped unless an answer is asked for.
                let status = if site.attack_replies {
                    "return 403"
                } else {
                    "return 444"
                };
                self.writer.say(&site.origin, status);
            }
            Goal::Redirect(chain, rule) => {
                let rules = site.chains.get(chain).map(|chain| &chain.rules);
                let rule = rules.and_then(|rules| rules.get(rule));
                if let Some(rule) = rule
                    && let Action::Redirect(status, url) = &rule.action
                {
                    let phrase = Phrase::new(&rule.origin, "return").word(status.to_string());
                    self.writer.end(phrase.at(target(url), url));
                }
            }
            Goal::Pass {
                vhost,
                location,
                state,
                once,
            } => self.pass(goal, vhost, location, (state, once))?,
        }
        Ok(())
    }

    fn pass(
        &mut self,
        goal: &Goal,
        vhost: usize,
        location: Option<usize>,
        (state, once): (State, bool),
    ) -> Applied {
        let site = self.site;
        let (Some(vhost), Some(found)) = (site.vhosts.get(vhost), use_of(site, goal)) else {
            return Ok(());
        };
        let policies = policies::of(site, vhost, location);
        let Some(pass) = policies.pass() else {
            return Ok(());
        };
        self.pass_to(found, &pass.origin);
        if let Some(group) = site.groups.get(found.group) {
            self.retries(group, &pass.origin, once);
        }
        if site.logger.is_some() {
            self.access_logs(Some(&vhost.name));
        }
        self.inner_limits(&policies);
        self.challenge(vhost);
        self.changed_fields(&policies);
        self.cached(&policies, state)
    }

    pub(super) fn pass_to(&mut self, found: Use, origin: &Origin) {
        let url = format!("http://{}", upstream_name(self.site, found));
        self.writer.end(Phrase::new(origin, "proxy_pass").word(url));
    }

    fn retries(&mut self, group: &Group, origin: &Origin, once: bool) {
        let options = &group.options;
        if once {
            self.writer.say(origin, "proxy_next_upstream off");
        } else if options.retries_nonidempotent {
            let words = "proxy_next_upstream error timeout non_idempotent";
            self.writer.say(origin, words);
        }
        if let Some(retries) = options.forward_retries {
            // The first attempt is none.
            let words = format!("proxy_next_upstream_tries {}", retries + 1);
            self.writer.say(origin, &words);
        }
        if let Some(limit) = options.forward_timeout {
            self.writer
                .end(seconds(origin, "proxy_next_upstream_timeout", limit));
        }
    }
}

/// The URL of a redirect: of its variables there are two.
fn target(url: &Term) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = url.bytes.as_slice();
    while let Some((&byte, after)) = rest.split_first() {
        let known: [&[u8]; 2] = [b"$request_uri", b"$host"];
        if let Some(name) = known.iter().find(|name| rest.starts_with(name)) {
            // Braces: what follows may be a letter.
            out.extend_from_slice(b"${");
            out.extend_from_slice(name.get(1..).unwrap_or_default());
            out.push(b'}');
            rest = rest.get(name.len()..).unwrap_or_default();
            continue;
        }
        out.extend(crate::tempesta::writing::literal(&[byte]));
        rest = after;
    }
    out
}
