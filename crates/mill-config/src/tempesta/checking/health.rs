//! Health of servers: `health_check`, `health`, and the counters about statuses.

use super::{Checker, directive_of, first};
use crate::resolve::Applied;
use crate::tempesta::entry::Directive;
use crate::tempesta::lexer::Term;
use crate::tempesta::site::HealthCheck;
use crate::tempesta::specification::{self, Place};
use crate::tempesta::value;

/// The monitor that is there without being written (fw/apm.c).
const AUTO: &str = "auto";

/// Seconds between probes of that monitor.
const AUTO_INTERVAL: u64 = 10;

/// Path of a probe that is not written.
const PATH_DEFAULT: &[u8] = b"/";

impl Checker {
    pub(super) fn health_check(&mut self, directive: Directive) -> Applied {
        let name = first(&directive).clone();
        let mut known = self.site.checks.iter();
        if known.any(|known| known.name.is(&name.display())) {
            let message = format!("duplicate health_check \"{}\"", name.display());
            return Err(name.error(message));
        }
        let mut check = HealthCheck {
            name,
            method: None,
            path: PATH_DEFAULT.to_vec(),
            fields: Vec::new(),
            statuses: Vec::new(),
            checksum: None,
            interval: 0,
        };
        let mut used = Vec::new();
        for entry in directive.children.unwrap_or_default() {
            let inner = directive_of(entry)?;
            let option = specification::check(&inner, Place::HealthCheck, &mut used)?;
            self.health_option(option, &inner, &mut check)?;
        }
        if !used.contains(&"timeout") {
            let message = format!(
                "health_check \"{}\" has no \"timeout\"",
                check.name.display()
            );
            return Err(check.name.error(message));
        }
        if check.statuses.is_empty() && !used.contains(&"resp_crc32") {
            let message = format!(
                "health_check \"{}\" has neither \"resp_code\" nor \"resp_crc32\"",
                check.name.display()
            );
            return Err(check.name.error(message));
        }
        if let Some((method, term)) = &check.method
            && method == b"HEAD"
            && check.checksum.is_some()
        {
            let mut error = term.error("the answer to HEAD has no content for \"resp_crc32\"");
            error.help = Some(String::from("use GET, or \"resp_code\" alone"));
            return Err(error);
        }
        self.site.checks.push(check);
        Ok(())
    }

    fn health_option(
        &mut self,
        option: &'static str,
        directive: &Directive,
        check: &mut HealthCheck,
    ) -> Applied {
        let term = first(directive);
        match option {
            "request" => Self::probe(term, check)?,
            "request_url" => self.notes.without_effect(
                &directive.name,
                "probes are sent at their time also while clients ask for this path",
            ),
            "resp_code" => {
                let ranges = directive.values.iter().map(value::statuses);
                check.statuses = ranges.collect::<Applied<_>>()?;
            }
            "resp_crc32" => {
                check.checksum = Some(match term.is("auto") {
                    true => String::from("auto"),
                    false => format!("{:08x}", value::number(term, 0, u64::from(u32::MAX))?),
                });
            }
            _ => check.interval = value::number(term, 1, u64::from(u16::MAX))?,
        }
        Ok(())
    }

    /// The request of a probe: method, path and fields. Its protocol is ours, and it has no content.
    fn probe(term: &Term, check: &mut HealthCheck) -> Applied {
        // The service script turns `\r\n` into line ends before Tempesta FW reads it.
        let raw = String::from_utf8_lossy(&term.raw);
        let text = raw.replace("\\r\\n", "\n").replace('\r', "");
        let mut lines = text.lines();
        let mut line = lines.next().unwrap_or_default().split(' ');
        let (method, path, protocol) = (line.next(), line.next(), line.next());
        let is_whole = protocol.is_some_and(|protocol| protocol.starts_with("HTTP/1."));
        let Some(path) = path.filter(|path| is_whole && path.starts_with('/')) else {
            let mut error = term.error("invalid request of a health_check");
            error.help = Some(String::from(
                "it is a whole request, \"GET / HTTP/1.0\\r\\n\\r\\n\" for example",
            ));
            return Err(error);
        };
        let method = method.unwrap_or_default().as_bytes();
        check.method = (method != b"GET").then(|| (method.to_vec(), term.clone()));
        check.path = path.as_bytes().to_vec();
        for line in lines.take_while(|line| !line.is_empty()) {
            let Some((name, text)) = line.split_once(':') else {
                return Err(term.error(format!("invalid field \"{line}\" of a health_check")));
            };
            let text = text.trim().as_bytes().to_vec();
            check.fields.push((name.as_bytes().to_vec(), text));
        }
        Ok(())
    }

    /// Counters of statuses, and what follows from them.
    pub(super) fn statistics(&mut self, name: &'static str, directive: &Directive) -> Applied {
        match name {
            "server_failover_http" => {
                let (from, to) = value::statuses(first(directive))?;
                let [_, answers, seconds] = &directive.values[..] else {
                    return Ok(());
                };
                let [answers, seconds] =
                    [answers, seconds].map(|number| value::number(number, 1, u64::from(u16::MAX)));
                let failover = format!("failover={from}-{to}:{}:{}s", answers?, seconds?);
                self.site.failovers.push(failover);
            }
            "apm_stats" => {
                for (key, text) in &directive.parameters {
                    if key.is("window") {
                        value::number(text, 60, 3600)?;
                    } else if key.is("scale") {
                        value::number(text, 1, 50)?;
                    } else {
                        return Err(super::group::invalid_parameter(key));
                    }
                }
                let why = "times of response are averaged over the latest requests";
                self.notes.without_effect(&directive.name, why);
            }
            _ => {
                for status in &directive.values {
                    value::statuses(status)?;
                }
                let why = "answers are counted by the classes of their statuses always: see the \
                           status API";
                self.notes.without_effect(&directive.name, why);
            }
        }
        Ok(())
    }

    /// Each monitor that a group names must be there.
    pub(super) fn finish_health(&mut self) -> Applied {
        let groups = self.site.groups.iter();
        let asked: Vec<Term> = groups
            .filter_map(|group| group.options.health.clone())
            .collect();
        for term in asked {
            let mut known = self.site.checks.iter();
            if known.any(|known| known.name.is(&term.display())) {
                continue;
            }
            if !term.is(AUTO) {
                let message = format!("health_check \"{}\" is not found", term.display());
                return Err(term.error(message));
            }
            self.site.checks.push(HealthCheck {
                name: term,
                method: None,
                path: PATH_DEFAULT.to_vec(),
                fields: Vec::new(),
                statuses: vec![(200, 200)],
                checksum: None,
                interval: AUTO_INTERVAL,
            });
        }
        Ok(())
    }
}
