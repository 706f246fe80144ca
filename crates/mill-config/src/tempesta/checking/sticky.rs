//! `sticky`: cookies of sessions.

use super::group::{invalid_parameter, refuse_duplicate};
use super::{Checker, directive_of, first};
use crate::resolve::Applied;
use crate::tempesta::entry::Directive;
use crate::tempesta::site::{Script, Sticky};
use crate::tempesta::specification::{self, Place};
use crate::tempesta::value;

/// The cookie's name where none is written (fw/http_sess_conf.c).
const NAME_DEFAULT: &[u8] = b"__tfw";

/// Longest name of a cookie there.
const NAME_LEN_MAX: usize = 32;

/// Requests without an enforced cookie where nothing is written.
const MISSES_DEFAULT: u64 = 1;

/// Statuses of a challenge.
const CHALLENGE_STATUSES: [u64; 14] = [
    200, 301, 302, 303, 307, 308, 400, 403, 404, 412, 500, 502, 503, 504,
];

impl Checker {
    /// Outside of vhosts: what vhosts have that say nothing themselves.
    pub(super) fn default_sticky(&mut self, directive: Directive) -> Applied {
        let sticky = self.sticky_block(directive)?;
        self.default_vhost().sticky = Some(sticky.clone());
        self.sticky = Some(sticky);
        Ok(())
    }

    pub(super) fn sticky_block(&mut self, directive: Directive) -> Applied<Sticky> {
        let outer = self.sticky.clone();
        let mut sticky = Sticky {
            cookie: None,
            options: Vec::new(),
            lifetime: outer.as_ref().map_or(0, |outer| outer.lifetime),
            pins: outer.as_ref().is_some_and(|outer| outer.pins),
            secret: None,
            misses: None,
            script: None,
        };
        let name = directive.name.clone();
        let mut used = Vec::new();
        let mut secret_at = None;
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            let option = specification::check(&inner, Place::Sticky, &mut used)?;
            if option == "secret" {
                secret_at = Some(inner.name.clone());
            }
            self.sticky_option(option, &inner, &mut sticky)?;
        }
        for (dependent, what) in [
            ("js_challenge", "a challenge"),
            ("cookie_options", "options"),
        ] {
            if used.contains(&dependent) && sticky.cookie.is_none() {
                let message = format!("\"{dependent}\" without \"cookie\" in the same block");
                let mut error = name.error(message);
                error.help = Some(format!("{what} belong to a cookie of the block itself"));
                return Err(error);
            }
        }
        let learns = matches!(sticky.cookie, Some((_, false, _)));
        if used.contains(&"js_challenge") && learns {
            return Err(name.error("\"js_challenge\" and \"learn\" exclude each other"));
        }
        if sticky.script.is_some() {
            // A challenge enforces its cookie, with no limit of its own.
            sticky.misses = sticky.misses.or(Some(0));
        }
        if let Some(outer) = outer {
            sticky.secret = sticky.secret.or(outer.secret);
            if sticky.cookie.is_none() {
                sticky.cookie = outer.cookie;
                sticky.options = outer.options;
                sticky.misses = outer.misses;
                sticky.script = outer.script;
            }
        }
        if let Some(secret) = secret_at
            && sticky.misses.is_none()
        {
            let why = "the cookie names the server only, and is not signed";
            self.notes.without_effect(&secret, why);
        }
        Ok(sticky)
    }

    fn sticky_option(
        &mut self,
        option: &'static str,
        directive: &Directive,
        sticky: &mut Sticky,
    ) -> Applied {
        match option {
            "cookie" => self.cookie(directive, sticky)?,
            "learn" => learn(directive, sticky)?,
            "cookie_options" => cookie_options(directive, sticky)?,
            // An empty one is drawn.
            "secret" => {
                let secret = first(directive);
                sticky.secret = (!secret.bytes.is_empty()).then(|| secret.clone());
            }
            "sess_lifetime" => {
                let seconds = value::number(first(directive), 0, u64::from(u32::MAX))?;
                sticky.lifetime = seconds;
            }
            "sticky_sessions" => {
                sticky.pins = true;
                match directive.values.first() {
                    None => self.notes.notice(
                        &directive.name,
                        "a session whose server fails goes to another one",
                        "as with \"allow_failover\"; Tempesta FW would answer 502",
                    ),
                    Some(word) if word.is("allow_failover") => {}
                    Some(word) => {
                        let message = format!("invalid value \"{}\"", word.display());
                        return Err(word.error(message));
                    }
                }
            }
            _ => sticky.script = Some(challenge(directive)?),
        }
        Ok(())
    }

    fn cookie(&mut self, directive: &Directive, sticky: &mut Sticky) -> Applied {
        refuse_second(directive, sticky)?;
        let mut name = NAME_DEFAULT.to_vec();
        let mut seen = Vec::new();
        let mut misses = None;
        for (key, text) in &directive.parameters {
            refuse_duplicate(&mut seen, key)?;
            if key.is("name") {
                name = cookie_name(text)?;
            } else if key.is("max_misses") {
                misses = Some((key, value::number(text, 0, u64::from(u32::MAX))?));
            } else {
                return Err(invalid_parameter(key));
            }
        }
        let enforce = directive.values.first();
        match enforce {
            Some(word) if !word.is("enforce") => {
                return Err(word.error(format!("invalid value \"{}\"", word.display())));
            }
            Some(_) => {
                let misses = misses.map(|(_, misses)| misses);
                sticky.misses = Some(misses.unwrap_or(MISSES_DEFAULT));
            }
            None => {
                if let Some((key, _)) = misses {
                    return Err(key.error("\"max_misses\" requires \"enforce\""));
                }
            }
        }
        sticky.cookie = Some((name, true, directive.name.origin.clone()));
        Ok(())
    }
}

fn refuse_second(directive: &Directive, sticky: &Sticky) -> Applied {
    match sticky.cookie {
        Some(_) => {
            let message = "\"cookie\" and \"learn\" exclude each other";
            Err(directive.name.error(message))
        }
        None => Ok(()),
    }
}

fn learn(directive: &Directive, sticky: &mut Sticky) -> Applied {
    refuse_second(directive, sticky)?;
    let mut name = None;
    for (key, text) in &directive.parameters {
        if !key.is("name") {
            return Err(invalid_parameter(key));
        }
        if name.replace(cookie_name(text)?).is_some() {
            return Err(key.error("parameter \"name\" is duplicate"));
        }
    }
    let Some(name) = name else {
        return Err(directive.name.error("\"learn\" has no \"name=\""));
    };
    sticky.cookie = Some((name, false, directive.name.origin.clone()));
    // There is no other use of a learnt cookie.
    sticky.pins = true;
    Ok(())
}

fn cookie_name(term: &crate::tempesta::lexer::Term) -> Applied<Vec<u8>> {
    let is_name = |byte: &u8| byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(byte);
    let len = term.bytes.len();
    if len == 0 || len > NAME_LEN_MAX || !term.bytes.iter().all(is_name) {
        let mut error = term.error(format!("invalid name of a cookie \"{}\"", term.display()));
        error.help = Some(format!("it has 1 to {NAME_LEN_MAX} bytes"));
        return Err(error);
    }
    Ok(term.bytes.clone())
}

fn cookie_options(directive: &Directive, sticky: &mut Sticky) -> Applied {
    let mut seen = Vec::new();
    for (key, text) in &directive.parameters {
        refuse_duplicate(&mut seen, key)?;
        sticky.options.push((key.clone(), Some(text.clone())));
    }
    for word in &directive.values {
        sticky.options.push((word.clone(), None));
    }
    Ok(())
}

fn challenge(directive: &Directive) -> Applied<Script> {
    let (mut least, mut range, mut status) = (None, None, None);
    for (key, text) in &directive.parameters {
        let number = value::number(text, 0, u64::from(u32::MAX))?;
        if key.is("delay_min") {
            least = Some(number);
        } else if key.is("delay_range") {
            range = Some(number);
        } else if key.is("resp_code") {
            if !CHALLENGE_STATUSES.contains(&number) {
                let message = format!("invalid status \"{}\"", text.display());
                return Err(text.error(message));
            }
            status = Some(number);
        } else {
            return Err(invalid_parameter(key));
        }
    }
    // 0 is none.
    let given = |delay: Option<u64>| delay.filter(|delay| *delay > 0);
    let (Some(delay_min_ms), Some(delay_range_ms)) = (given(least), given(range)) else {
        let message = "\"js_challenge\" needs \"delay_min=\" and \"delay_range=\"";
        return Err(directive.name.error(message));
    };
    Ok(Script {
        name: directive.name.clone(),
        delay_min_ms,
        delay_range_ms,
        status,
        page: directive.values.first().cloned(),
    })
}
