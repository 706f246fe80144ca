//! `vhost`, `location`, certificates.

use super::group::{invalid_parameter, refuse_duplicate};
use super::{Checker, DEFAULT, directive_of, first};
use crate::resolve::Applied;
use crate::tempesta::entry::{Directive, Entry, Rule};
use crate::tempesta::lexer::Term;
use crate::tempesta::site::{Location, Pass, PathTest, Policy, Tls, Vhost};
use crate::tempesta::specification::{self, Place};
use crate::tempesta::value;

impl Checker {
    pub(super) fn vhost(&mut self, directive: Directive) -> Applied {
        let name = first(&directive).clone();
        let is_default = name.is(DEFAULT);
        let known = self.find_vhost(&name);
        // The default one is in its place from the beginning, with what is written outside of vhosts.
        let is_written = |index: usize| {
            let vhost = self.site.vhosts.get(index);
            !is_default || vhost.is_some_and(|vhost| !is_implicit(vhost))
        };
        if known.is_some_and(is_written) {
            let message = format!("duplicate vhost \"{}\"", name.display());
            return Err(name.error(message));
        }
        let mut vhost = Vhost {
            name,
            policy: Policy::default(),
            locations: Vec::new(),
            tls: Tls::default(),
            sticky: None,
        };
        if is_default {
            let taken = std::mem::replace(self.default_vhost(), vhost);
            vhost = Vhost {
                name: self.default_vhost().name.clone(),
                ..taken
            };
        }
        self.vhost_block(directive, &mut vhost, is_default)?;
        if vhost.policy.pass.is_none() {
            if !is_default {
                let message = format!("vhost \"{}\" has no \"proxy_pass\"", vhost.name.display());
                return Err(vhost.name.error(message));
            }
            vhost.policy.pass = Some(self.default_pass(&vhost.name)?);
        }
        if is_default {
            *self.default_vhost() = vhost;
        } else {
            self.site.vhosts.push(vhost);
        }
        Ok(())
    }

    fn vhost_block(
        &mut self,
        directive: Directive,
        vhost: &mut Vhost,
        is_default: bool,
    ) -> Applied {
        let mut used = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            let name = specification::check(&inner, Place::Vhost, &mut used)?;
            match name {
                "location" => self.location(inner, vhost, is_default)?,
                "proxy_pass" => vhost.policy.pass = Some(self.pass(&inner, is_default)?),
                "sticky" => vhost.sticky = Some(self.sticky_block(inner)?),
                "frang_limits" => self.inner_limits(inner, &mut vhost.policy.limits)?,
                "tls_certificate"
                | "tls_certificate_key"
                | "tls_tickets"
                | "tls_match_any_server_name" => {
                    self.tls(name, &inner, &mut vhost.tls)?;
                }
                _ => self.policy(name, &inner, &mut vhost.policy)?,
            }
        }
        if vhost.sticky.is_none() {
            vhost.sticky = self.sticky.clone();
        }
        Ok(())
    }

    /// A location outside of vhosts: one of the default vhost.
    pub(super) fn default_location(&mut self, directive: Directive) -> Applied {
        let mut vhost = Vhost {
            name: directive.name.clone(),
            policy: Policy::default(),
            locations: Vec::new(),
            tls: Tls::default(),
            sticky: None,
        };
        std::mem::swap(&mut vhost, self.default_vhost());
        let checked = self.location(directive, &mut vhost, true);
        *self.default_vhost() = vhost;
        checked
    }

    fn location(&mut self, directive: Directive, vhost: &mut Vhost, is_default: bool) -> Applied {
        let path = self.path_test(&directive.values)?;
        let same = |known: &Location| {
            known.path.test == path.test
                && known.path.text.bytes.eq_ignore_ascii_case(&path.text.bytes)
        };
        if vhost.locations.iter().any(same) {
            let message = format!("duplicate location \"{}\"", path.text.display());
            return Err(path.text.error(message));
        }
        let mut location = Location {
            path,
            policy: Policy::default(),
        };
        let mut used = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            let name = specification::check(&inner, Place::Location, &mut used)?;
            match name {
                "proxy_pass" => location.policy.pass = Some(self.pass(&inner, is_default)?),
                "frang_limits" => self.inner_limits(inner, &mut location.policy.limits)?,
                _ => self.policy(name, &inner, &mut location.policy)?,
            }
        }
        if location.policy.pass.is_none() && !is_default {
            let message = format!(
                "location \"{}\" of vhost \"{}\" has no \"proxy_pass\"",
                location.path.text.display(),
                vhost.name.display()
            );
            return Err(directive.name.error(message));
        }
        vhost.locations.push(location);
        Ok(())
    }

    /// An operator and its text.
    pub(super) fn path_test(&mut self, values: &[Term]) -> Applied<PathTest> {
        let [operator, text, ..] = values else {
            unreachable!("the number of arguments has been checked");
        };
        super::policy::path_test(operator, text)
    }

    fn pass(&mut self, directive: &Directive, is_default: bool) -> Applied<Pass> {
        let name = first(directive);
        let mut backup = None;
        for (key, text) in &directive.parameters {
            if !key.is("backup") {
                return Err(invalid_parameter(key));
            }
            backup = Some(text);
        }
        let others = [Some(name), backup].into_iter().flatten();
        if is_default && let Some(other) = others.clone().find(|name| !name.is(DEFAULT)) {
            let mut error = other.error("the default vhost passes to the group \"default\" only");
            error.help = Some(String::from(
                "a vhost with a name of its own may have any group",
            ));
            return Err(error);
        }
        let group = self.known_group(name)?;
        let backup = match backup.filter(|_| !is_default) {
            Some(text) => Some((self.known_group(text)?, text)),
            None => None,
        };
        if let Some((index, text)) = backup
            && index == group
        {
            return Err(text.error("the backup is the group itself"));
        }
        Ok(Pass {
            origin: directive.name.origin.clone(),
            group,
            backup: backup.map(|(index, _)| index),
        })
    }

    fn known_group(&self, name: &Term) -> Applied<usize> {
        self.find_group(name).ok_or_else(|| {
            let mut error = name.error(format!("srv_group \"{}\" is not found", name.display()));
            error.help = Some(String::from(
                "groups are written before vhosts, and these before http_chain",
            ));
            error
        })
    }

    /// Where the default vhost passes to.
    pub(super) fn default_pass(&self, name: &Term) -> Applied<Pass> {
        let group = Term {
            bytes: DEFAULT.into(),
            raw: DEFAULT.into(),
            origin: name.origin.clone(),
        };
        Ok(Pass {
            origin: name.origin.clone(),
            group: self.known_group(&group)?,
            backup: None,
        })
    }

    pub(super) fn find_vhost(&self, name: &Term) -> Option<usize> {
        let same = |vhost: &Vhost| vhost.name.bytes.eq_ignore_ascii_case(&name.bytes);
        self.site.vhosts.iter().position(same)
    }

    pub(super) fn tls(
        &mut self,
        name: &'static str,
        directive: &Directive,
        tls: &mut Tls,
    ) -> Applied {
        match name {
            "tls_certificate" => {
                if let Some((open, None)) = tls.certificates.last() {
                    return Err(open.error("\"tls_certificate\" has no \"tls_certificate_key\""));
                }
                tls.certificates.push((first(directive).clone(), None));
            }
            "tls_certificate_key" => match tls.certificates.last_mut() {
                Some((_, key @ None)) => *key = Some(first(directive).clone()),
                _ => {
                    let message = "\"tls_certificate_key\" without \"tls_certificate\" before it";
                    return Err(directive.name.error(message));
                }
            },
            "tls_tickets" => self.tickets(directive, tls)?,
            _ => tls.any_name = Some(value::switch(&directive.values)?),
        }
        Ok(())
    }

    fn tickets(&mut self, directive: &Directive, tls: &mut Tls) -> Applied {
        let is_on = value::switch(&directive.values)?;
        let mut lifetime = None;
        let mut seen = Vec::new();
        for (key, text) in &directive.parameters {
            refuse_duplicate(&mut seen, key)?;
            if key.is("lifetime") {
                lifetime = Some(value::number(text, 1, u64::from(u32::MAX))?);
            } else if key.is("secret") {
                // An empty one is drawn.
                tls.ticket_secret = (!text.bytes.is_empty()).then(|| text.clone());
            } else {
                return Err(invalid_parameter(key));
            }
        }
        tls.tickets = Some((is_on, lifetime, directive.name.origin.clone()));
        Ok(())
    }
}

/// Each certificate has its key.
pub(super) fn check_keys(vhost: &Vhost) -> Applied {
    match vhost.tls.certificates.iter().find(|(_, key)| key.is_none()) {
        Some((open, _)) => Err(open.error("\"tls_certificate\" has no \"tls_certificate_key\"")),
        None => Ok(()),
    }
}

/// The default vhost as it is before `vhost default`.
fn is_implicit(vhost: &Vhost) -> bool {
    vhost.policy.pass.is_none()
}

/// Refuses an entry that is no rule.
pub(super) fn rule_of(entry: Entry) -> Applied<Box<Rule>> {
    match entry {
        Entry::Rule(rule) => Ok(rule),
        Entry::Directive(directive) => {
            specification::check(&directive, Place::Chain, &mut Vec::new())?;
            let mut error = directive.name.error("a rule is expected");
            error.help = Some(String::from("its form is: FIELD == VALUE -> ACTION;"));
            Err(error)
        }
    }
}
