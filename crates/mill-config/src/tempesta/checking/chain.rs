//! `http_chain` and its rules.

use super::{Checker, vhost};
use crate::resolve::Applied;
use crate::tempesta::entry::{self, Directive, Operator, Rule};
use crate::tempesta::lexer::Term;
use crate::tempesta::pattern;
use crate::tempesta::site::{Action, Chain, ChainRule, Comparison, Condition, Pattern, Source};
use crate::tempesta::value;

/// Most rules of all chains: each may become a variable that is evaluated inside another.
const RULES_MAX: usize = 2000;

/// Statuses of redirects.
const REDIRECTS: [u64; 5] = [301, 302, 303, 307, 308];

/// Methods by the names that rules have.
const METHODS: [&str; 16] = [
    "COPY",
    "DELETE",
    "GET",
    "HEAD",
    "LOCK",
    "MKCOL",
    "MOVE",
    "OPTIONS",
    "PATCH",
    "POST",
    "PROPFIND",
    "PROPPATCH",
    "PUT",
    "TRACE",
    "UNLOCK",
    "PURGE",
];

impl Checker {
    pub(super) fn chain(&mut self, directive: Directive) -> Applied {
        let name = directive.values.first().cloned();
        if self.site.main_chain.is_some() {
            return Err(directive
                .name
                .error("the http_chain without a name must be the only one and the last"));
        }
        if let Some(name) = &name
            && self.find_chain(name).is_some()
        {
            let message = format!("duplicate http_chain \"{}\"", name.display());
            return Err(name.error(message));
        }
        if name.is_none() {
            self.site.main_chain = Some(self.site.chains.len());
        }
        let mut rules: Vec<ChainRule> = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let rule = vhost::rule_of(entry)?;
            if let Some(last) = rules.last()
                && is_last(last)
            {
                let mut error = rule
                    .origin
                    .error("a rule after one that takes all requests");
                error.details = vec![format!("that one is in line {}", last.origin.line)];
                return Err(error);
            }
            rules.push(self.rule(rule, name.as_ref())?);
        }
        // Stable: each of the two lists keeps its order.
        rules.sort_by_key(|rule| !matches!(rule.condition, Condition::Mark(_)));
        self.site.chains.push(Chain { name, rules });
        let count: usize = self.site.chains.iter().map(|chain| chain.rules.len()).sum();
        if count > RULES_MAX {
            let message = format!("more than {RULES_MAX} rules");
            return Err(directive.name.error(message));
        }
        Ok(())
    }

    /// The default vhost is the last resort where there is no main chain and no chain names it.
    pub(super) fn finish_chains(&mut self) {
        let has_group = self.default_vhost().name.clone();
        if self.default_vhost().policy.pass.is_none() {
            // Without servers there is nowhere to pass to: then requests are dropped.
            self.default_vhost().policy.pass = self.default_pass(&has_group).ok();
        }
    }

    fn find_chain(&self, name: &Term) -> Option<usize> {
        self.site.chains.iter().position(|chain| {
            let known = chain.name.as_ref();
            known.is_some_and(|known| known.bytes.eq_ignore_ascii_case(&name.bytes))
        })
    }

    fn rule(&mut self, rule: Box<Rule>, chain: Option<&Term>) -> Applied<ChainRule> {
        let action = self.action(&rule, chain)?;
        let negated = match &rule.condition {
            Some(condition) => condition.operator == Operator::Unequal,
            None => false,
        };
        let condition = match rule.condition {
            Some(condition) => self.condition(&condition)?,
            None => Condition::Always,
        };
        Ok(ChainRule {
            condition,
            negated,
            action,
            origin: rule.origin,
        })
    }

    fn condition(&mut self, condition: &entry::Condition) -> Applied<Condition> {
        let entry::Condition {
            field,
            name,
            operator,
            value,
        } = condition;
        let takes_name = field.is("hdr") || field.is("cookie");
        match name {
            Some(name) if !takes_name => {
                let message = format!("unexpected \"{}\"", name.display());
                let mut error = name.error(message);
                error.help = Some(String::from("only \"hdr\" and \"cookie\" have a name"));
                return Err(error);
            }
            None if takes_name => {
                return Err(field.error(format!("\"{}\" has no name", field.display())));
            }
            _ => {}
        }
        let is_regex = *operator == Operator::Matches;
        if is_regex && value.raw == b"*" {
            return Err(value.error("a regular expression is expected, or == instead of ~"));
        }
        let template = |text: &str| Source(text.as_bytes().to_vec());
        let comparison = if field.is("uri") {
            self.compare(template("$request_uri"), value, is_regex, true)?
        } else if field.is("host") {
            self.compare(template("$host"), value, is_regex, true)?
        } else if field.is("hdr") {
            let name = name.as_ref().unwrap_or(field);
            self.header(name, value, is_regex)?
        } else if field.is("cookie") {
            if is_regex {
                let mut error = value.error("\"cookie\" takes no regular expression");
                error.help = Some(String::from("write: hdr cookie ~ \"…\""));
                return Err(error);
            }
            let name = name.as_ref().unwrap_or(field);
            Comparison {
                source: template("$http_cookie"),
                pattern: pattern::cookie(name, value)?,
            }
        } else if field.is("method") {
            self.method(value)?
        } else if field.is("mark") {
            return mark(value);
        } else {
            let mut error = field.error(format!("unknown field \"{}\"", field.display()));
            error.help = Some(String::from(
                "it is one of uri, host, method, hdr, cookie, mark",
            ));
            return Err(error);
        };
        Ok(Condition::Field(comparison))
    }

    /// A text with wildcards at its ends, or a regular expression.
    fn compare(
        &mut self,
        source: Source,
        value: &Term,
        is_regex: bool,
        suffixes: bool,
    ) -> Applied<Comparison> {
        let pattern = if is_regex {
            pattern::regex(value)?
        } else {
            let (pattern, warning) = pattern::wildcard(&value.raw, suffixes);
            if let Some(warning) = warning {
                self.notes.warn(value, warning, "as in Tempesta FW");
            }
            pattern
        };
        Ok(Comparison { source, pattern })
    }

    fn header(&mut self, name: &Term, value: &Term, is_regex: bool) -> Applied<Comparison> {
        /// Fields that Tempesta FW keeps apart; suffixes are compared in these only (fw/http_msg.c).
        const SPECIAL: [&str; 13] = [
            "host",
            "content-length",
            "content-type",
            "content-encoding",
            "user-agent",
            "connection",
            "x-forwarded-for",
            "keep-alive",
            "transfer-encoding",
            "cookie",
            "if-none-match",
            "referer",
            "upgrade",
        ];
        let trimmed = name.bytes.trim_ascii();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if trimmed.is_empty() || !trimmed.iter().all(is_name) {
            return Err(name.error(format!("invalid name of a field \"{}\"", name.display())));
        }
        let lower = trimmed.to_ascii_lowercase();
        let variable = lower
            .iter()
            .map(|&byte| if byte == b'-' { b'_' } else { byte });
        let source = b"$http_".iter().copied().chain(variable).collect();
        let is_special = SPECIAL.iter().any(|known| known.as_bytes() == lower);
        self.compare(Source(source), value, is_regex, is_special)
    }

    fn method(&mut self, value: &Term) -> Applied<Comparison> {
        let source = Source(b"$request_method".to_vec());
        let pattern = if value.raw == b"*" {
            Pattern::Regex(b"~.".to_vec())
        } else if METHODS.iter().any(|known| value.is(known)) {
            Pattern::Exact(value.bytes.to_ascii_uppercase())
        } else {
            return Err(value.error(format!("unknown method \"{}\"", value.display())));
        };
        Ok(Comparison { source, pattern })
    }

    fn action(&mut self, rule: &Rule, chain: Option<&Term>) -> Applied<Action> {
        let action = &rule.action;
        let most = u64::from(u32::MAX);
        let number = || match &rule.argument {
            Some(term) => {
                value::number(term, 0, most).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
            }
            None => Err(action.error(format!("\"{}\" has no value", action.display()))),
        };
        if action.is("mark") {
            return number().map(Action::Mark);
        }
        if action.is("cache_ttl") {
            return number().map(Action::CacheTtl);
        }
        if action.is("cache_disable") {
            let is_on = |term: &Term| term.bytes.starts_with(b"1");
            return Ok(Action::CacheDisable(
                rule.argument.as_ref().is_none_or(is_on),
            ));
        }
        if let Some(argument) = &rule.argument {
            let status = value::parse_number(&action.bytes);
            let status = status.filter(|status| REDIRECTS.contains(status));
            let Some(status) = status.and_then(|status| u16::try_from(status).ok()) else {
                let mut error = action.error(format!("\"{}\" takes no value", action.display()));
                error.help = Some(String::from(
                    "mark, cache_disable, cache_ttl, 301, 302, 303, 307 and 308 do",
                ));
                return Err(error);
            };
            return Ok(Action::Redirect(status, argument.clone()));
        }
        if action.is("block") {
            return Ok(Action::Block);
        }
        if chain.is_some_and(|chain| chain.is(&action.display())) {
            return Err(action.error("an http_chain that leads to itself"));
        }
        if let Some(index) = self.find_chain(action) {
            return Ok(Action::Chain(index));
        }
        if let Some(index) = self.find_vhost(action) {
            return Ok(Action::Vhost(index));
        }
        let message = format!(
            "neither an http_chain nor a vhost \"{}\" is found",
            action.display()
        );
        let mut error = action.error(message);
        error.help = Some(String::from(
            "vhosts are written before chains, and a chain before those that lead to it",
        ));
        Err(error)
    }
}

fn mark(value: &Term) -> Applied<Condition> {
    if value.raw == b"*" {
        return Ok(Condition::Mark(None));
    }
    let number = value::number(value, 0, u64::from(u32::MAX))?;
    Ok(Condition::Mark(u32::try_from(number).ok()))
}

/// Whether no rule may follow: it has no condition, and requests do not go on after it.
fn is_last(rule: &ChainRule) -> bool {
    let goes_on = matches!(
        rule.action,
        Action::Mark(_) | Action::CacheDisable(_) | Action::CacheTtl(_)
    );
    matches!(rule.condition, Condition::Always) && !goes_on
}
