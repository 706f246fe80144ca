//! Groups of servers: `srv_group`, `server`, `sched` and the options of both.

use super::{Checker, DEFAULT, directive_of, first};
use crate::resolve::Applied;
use crate::resolve::draft::Origin;
use crate::tempesta::entry::Directive;
use crate::tempesta::lexer::Term;
use crate::tempesta::site::{Balancing, Group, GroupOptions, Server};
use crate::tempesta::specification::{self, Place};
use crate::tempesta::value;

/// Connections to a server where `conns_n` is not written (fw/sock_srv.c).
const CONNECTIONS_DEFAULT: u64 = 32;

/// Largest number that Tempesta FW takes for most options: C's INT_MAX.
const INT_MAX: u64 = i32::MAX as u64;

impl Checker {
    pub(super) fn group(&mut self, directive: Directive) -> Applied {
        let name = first(&directive).clone();
        if let Some(known) = self.find_group(&name) {
            let known = self.site.groups.get(known);
            let is_implicit = known.is_some() && self.implicit_group.is_some() && name.is(DEFAULT);
            let mut error = name.error(format!("duplicate srv_group \"{}\"", name.display()));
            if is_implicit {
                error.help = Some(String::from(
                    "the servers outside of groups are the group \"default\" already",
                ));
            }
            return Err(error);
        }
        let mut group = Group {
            name,
            servers: Vec::new(),
            options: GroupOptions::default(),
        };
        let mut used = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            match specification::check(&inner, Place::Group, &mut used)? {
                "server" => add_server(&mut group, &inner)?,
                option => self.group_option(option, &inner, &mut group.options)?,
            }
        }
        if group.servers.is_empty() {
            let message = format!(
                "no servers are inside srv_group \"{}\"",
                group.name.display()
            );
            return Err(group.name.error(message));
        }
        inherit(&mut group.options, &self.options, &used);
        self.site.groups.push(group);
        Ok(())
    }

    /// A server outside of groups.
    pub(super) fn implicit_server(&mut self, directive: &Directive) -> Applied {
        let index = match self.implicit_group {
            Some(index) => index,
            None => {
                let name = Term {
                    bytes: DEFAULT.into(),
                    raw: DEFAULT.into(),
                    origin: directive.name.origin.clone(),
                };
                if self.find_group(&name).is_some() {
                    let message = "a server outside of groups after srv_group \"default\"";
                    let mut error = directive.name.error(message);
                    error.help = Some(String::from("write it into that group"));
                    return Err(error);
                }
                self.site.groups.push(Group {
                    name,
                    servers: Vec::new(),
                    options: GroupOptions::default(),
                });
                let index = self.site.groups.len() - 1;
                self.implicit_group = Some(index);
                index
            }
        };
        match self.site.groups.get_mut(index) {
            Some(group) => add_server(group, directive),
            None => Ok(()),
        }
    }

    /// An option of a group, or a default of all.
    pub(super) fn group_option(
        &mut self,
        name: &'static str,
        directive: &Directive,
        options: &mut GroupOptions,
    ) -> Applied {
        let term = first(directive);
        match name {
            "sched" => {
                let balancing = self.scheduler(directive)?;
                options.balancing = Some((balancing, directive.name.origin.clone()));
            }
            "server_queue_size" => options.queue = Some(value::number(term, 0, INT_MAX)?),
            "server_forward_timeout" => {
                options.forward_timeout = Some(value::number(term, 0, INT_MAX)?);
            }
            "server_forward_retries" => {
                options.forward_retries = Some(value::number(term, 0, u64::from(u16::MAX))?);
            }
            "server_retry_nonidempotent" => options.retries_nonidempotent = true,
            "server_connect_retries" => {
                options.connect_retries = Some(value::number(term, 0, INT_MAX)?);
            }
            _ => options.health = Some(term.clone()),
        }
        Ok(())
    }

    fn scheduler(&mut self, directive: &Directive) -> Applied<Balancing> {
        let scheduler = first(directive);
        let unknown = |term: &Term, known: &str| {
            let mut error = term.error(format!("unknown scheduler \"{}\"", term.display()));
            error.help = Some(format!("it is one of {known}"));
            Err(error)
        };
        if scheduler.is("hash") {
            return match directive.values.get(1) {
                Some(more) => Err(more.error(format!("invalid value \"{}\"", more.display()))),
                None => Ok(Balancing::Hash),
            };
        }
        if !scheduler.is("ratio") {
            return unknown(scheduler, "ratio, hash");
        }
        let balancing = match directive.values.get(1) {
            None => return Ok(Balancing::Ratio),
            Some(kind) if kind.is("static") => Balancing::Ratio,
            Some(kind) if kind.is("dynamic") => Balancing::Dynamic,
            Some(kind) if kind.is("predict") => Balancing::Predict,
            Some(kind) => return unknown(kind, "static, dynamic, predict"),
        };
        match balancing {
            Balancing::Predict => prediction(directive)?,
            _ => refuse_parameters(directive)?,
        }
        if balancing != Balancing::Ratio {
            self.measure(directive)?;
        }
        Ok(balancing)
    }

    /// `minimum`, `maximum`, `average` or `percentile [N]` of times of response.
    fn measure(&mut self, directive: &Directive) -> Applied {
        let Some(measure) = directive.values.get(2) else {
            return Ok(());
        };
        if measure.is("average") {
            return Ok(());
        }
        if measure.is("percentile") {
            if let Some(number) = directive.values.get(3) {
                let known = value::parse_number(&number.bytes);
                if !known.is_some_and(|number| [50, 75, 90, 95, 99].contains(&number)) {
                    let mut error =
                        number.error(format!("invalid percentile \"{}\"", number.display()));
                    error.help = Some(String::from("it is one of 50, 75, 90, 95, 99"));
                    return Err(error);
                }
            }
        } else if !measure.is("minimum") && !measure.is("maximum") {
            let mut error = measure.error(format!("invalid value \"{}\"", measure.display()));
            error.help = Some(String::from(
                "it is one of minimum, maximum, average, percentile",
            ));
            return Err(error);
        }
        self.notes.notice(
            measure,
            format!(
                "servers are balanced by \"average\", not by \"{}\"",
                measure.display()
            ),
            "the average of times of response is what is kept for each server",
        );
        Ok(())
    }
}

/// `past`, `rate` and `ahead`.
fn prediction(directive: &Directive) -> Applied {
    /// Largest and default `past`, in seconds, and the largest `rate` (fw/sock_srv.c).
    const PAST_MAX: u64 = 120;
    const PAST_DEFAULT: u64 = 30;
    const RATE_MAX: u64 = 20;
    let mut past = PAST_DEFAULT;
    let mut seen: Vec<&Term> = Vec::new();
    let mut ahead = None;
    for (key, text) in &directive.parameters {
        refuse_duplicate(&mut seen, key)?;
        if key.is("past") {
            past = value::number(text, 1, PAST_MAX)?;
        } else if key.is("rate") {
            value::number(text, 1, RATE_MAX)?;
        } else if key.is("ahead") {
            ahead = Some(text);
        } else {
            return Err(invalid_parameter(key));
        }
    }
    if let Some(text) = ahead {
        value::number(text, 1, past / 2)?;
    }
    Ok(())
}

fn refuse_parameters(directive: &Directive) -> Applied {
    match directive.parameters.first() {
        Some((key, _)) => Err(invalid_parameter(key)),
        None => Ok(()),
    }
}

/// `invalid parameter "key"`, at the key.
pub(super) fn invalid_parameter(key: &Term) -> Box<crate::Diagnostic> {
    key.error(format!("invalid parameter \"{}\"", key.display()))
}

/// An error if the key has occurred.
pub(super) fn refuse_duplicate<'a>(seen: &mut Vec<&'a Term>, key: &'a Term) -> Applied {
    if seen.iter().any(|known| known.is(&key.display())) {
        return Err(key.error(format!("parameter \"{}\" is duplicate", key.display())));
    }
    seen.push(key);
    Ok(())
}

fn add_server(group: &mut Group, directive: &Directive) -> Applied {
    let term = first(directive).clone();
    let address = value::address(&term)?;
    if group.servers.iter().any(|known| known.address == address) {
        return Err(term.error(format!("duplicate server \"{}\"", term.display())));
    }
    let mut server = Server {
        term,
        address,
        connections: CONNECTIONS_DEFAULT,
        weight: None,
    };
    let mut seen = Vec::new();
    for (key, text) in &directive.parameters {
        refuse_duplicate(&mut seen, key)?;
        if key.is("conns_n") {
            server.connections = value::number(text, 1, u64::from(u16::MAX))?;
        } else if key.is("weight") {
            server.weight = Some(value::number(text, 1, 100)?);
        } else {
            return Err(invalid_parameter(key));
        }
    }
    group.servers.push(server);
    Ok(())
}

/// A group takes from outside what it does not say itself.
pub(super) fn inherit(options: &mut GroupOptions, outer: &GroupOptions, used: &[&'static str]) {
    let outer = outer.clone();
    options.balancing = options.balancing.take().or(outer.balancing);
    options.queue = options.queue.or(outer.queue);
    options.forward_timeout = options.forward_timeout.or(outer.forward_timeout);
    options.forward_retries = options.forward_retries.or(outer.forward_retries);
    options.connect_retries = options.connect_retries.or(outer.connect_retries);
    if !used.contains(&"server_retry_nonidempotent") {
        options.retries_nonidempotent = outer.retries_nonidempotent;
    }
    // As in Tempesta FW, a health monitor outside of groups is that of the implicit group only.
}

/// The balancing of a group.
pub(in crate::tempesta) fn balancing(group: &Group) -> (Balancing, &Origin) {
    match &group.options.balancing {
        Some((balancing, origin)) => (*balancing, origin),
        None => (Balancing::Ratio, &group.name.origin),
    }
}
