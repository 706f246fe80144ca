//! From entries to a [`Site`], with the checks of Tempesta FW: order, duplicates, ranges, references, and what stands
//! implicitly.
//!
//! As there, a name must be written before it is used: groups of servers, then vhosts, then chains.

mod chain;
mod client;
mod group;
mod health;
mod limits;
mod policy;
mod sticky;
mod store;
mod vhost;

pub(super) use group::balancing;

use super::entry::{Directive, Entry};
use super::lexer::Term;
use super::notes::Notes;
use super::site::{Cache, Client, Group, GroupOptions, Limits, Policy, Site, Sticky, Tls, Vhost};
use super::specification::{self, Place};
use crate::resolve::Applied;
use crate::resolve::draft::Origin;

/// The name of the group, the vhost and the chain that are there without being written.
const DEFAULT: &str = "default";

/// The state of one check.
pub(super) struct Checker {
    site: Site,
    notes: Notes,
    /// Defaults of groups, as far as they are written outside of groups so far.
    options: GroupOptions,
    /// The group of servers outside of groups.
    implicit_group: Option<usize>,
    /// Defaults of sticky sessions.
    sticky: Option<Sticky>,
    /// Names of the top level that have occurred.
    used: Vec<&'static str>,
}

/// The checked configuration, and what is to be said about it.
pub(super) fn check(entries: Vec<Entry>, origin: Origin) -> (Applied<Site>, Notes) {
    let mut checker = Checker::new(origin);
    let checked = checker.top(entries).and_then(|()| checker.finish());
    let Checker { site, notes, .. } = checker;
    (checked.map(|()| site), notes)
}

impl Checker {
    fn new(origin: Origin) -> Self {
        let default = Vhost {
            name: Term {
                bytes: DEFAULT.into(),
                raw: DEFAULT.into(),
                origin: origin.clone(),
            },
            policy: Policy::default(),
            locations: Vec::new(),
            tls: Tls::default(),
            sticky: None,
        };
        let site = Site {
            origin,
            listens: Vec::new(),
            client: Client::default(),
            groups: Vec::new(),
            checks: Vec::new(),
            logs_to_kernel: false,
            logger: None,
            failovers: Vec::new(),
            vhosts: vec![default],
            chains: Vec::new(),
            main_chain: None,
            cache: Cache {
                is_on: true,
                origin: None,
                size_bytes: store::SIZE_BYTES_DEFAULT,
                methods: Vec::new(),
                ttl: store::TTL_DEFAULT,
                purge: None,
                purge_acl: Vec::new(),
            },
            via: None,
            bodies: Vec::new(),
            attack_replies: false,
            limits: Limits::default(),
            entries: Vec::new(),
            has_limits: false,
        };
        Self {
            site,
            notes: Notes::default(),
            options: GroupOptions::default(),
            implicit_group: None,
            sticky: None,
            used: Vec::new(),
        }
    }

    fn top(&mut self, entries: Vec<Entry>) -> Applied {
        for entry in entries {
            let directive = directive_of(entry)?;
            let mut used = std::mem::take(&mut self.used);
            let name = specification::check(&directive, Place::Top, &mut used);
            self.used = used;
            self.top_directive(name?, directive)?;
        }
        Ok(())
    }

    fn top_directive(&mut self, name: &'static str, directive: Directive) -> Applied {
        match name {
            "server" => self.implicit_server(&directive),
            "srv_group" => self.group(directive),
            "sched"
            | "server_queue_size"
            | "server_forward_timeout"
            | "server_forward_retries"
            | "server_retry_nonidempotent"
            | "server_connect_retries"
            | "health" => {
                let mut options = std::mem::take(&mut self.options);
                let checked = self.group_option(name, &directive, &mut options);
                self.options = options;
                checked
            }
            "health_check" => self.health_check(directive),
            "server_failover_http" | "health_stat" | "health_stat_server" | "apm_stats" => {
                self.statistics(name, &directive)
            }
            "vhost" => self.vhost(directive),
            "location" => self.default_location(directive),
            "http_chain" => self.chain(directive),
            "sticky" => self.default_sticky(directive),
            "frang_limits" => self.limits(directive),
            "tft" | "tfh" => self.fingerprints(name, directive),
            "cache" | "cache_db" | "cache_size" | "cache_methods" | "cache_ttl" | "cache_purge"
            | "cache_purge_acl" => self.store(name, &directive),
            "tls_certificate"
            | "tls_certificate_key"
            | "tls_tickets"
            | "tls_match_any_server_name" => {
                let mut tls = std::mem::take(&mut self.default_vhost().tls);
                let checked = self.tls(name, &directive, &mut tls);
                self.default_vhost().tls = tls;
                checked
            }
            "cache_bypass"
            | "cache_fulfill"
            | "cache_use_stale"
            | "cache_control_ignore"
            | "cache_resp_hdr_del"
            | "nonidempotent"
            | "req_hdr_add"
            | "req_hdr_set"
            | "resp_hdr_add"
            | "resp_hdr_set"
            | "http_post_validate" => {
                let mut policy = std::mem::take(&mut self.default_vhost().policy);
                let checked = self.policy(name, &directive, &mut policy);
                self.default_vhost().policy = policy;
                checked
            }
            _ => self.client(name, directive),
        }
    }

    fn default_vhost(&mut self) -> &mut Vhost {
        // The vector begins with it, and nothing removes it.
        match self.site.vhosts.first_mut() {
            Some(vhost) => vhost,
            None => unreachable!("the default vhost is made with the site"),
        }
    }

    /// What can only be checked once all has been read.
    fn finish(&mut self) -> Applied {
        if let Some(group) = self.implicit_group
            && let Some(group) = self.site.groups.get_mut(group)
        {
            group.options = self.options.clone();
        }
        self.finish_store()?;
        self.finish_health()?;
        self.finish_limits()?;
        for vhost in &self.site.vhosts {
            vhost::check_keys(vhost)?;
        }
        self.finish_chains();
        Ok(())
    }

    fn find_group(&self, name: &Term) -> Option<usize> {
        let same = |group: &Group| group.name.bytes.eq_ignore_ascii_case(&name.bytes);
        self.site.groups.iter().position(same)
    }
}

/// The directive of an entry; rules stand in chains only.
fn directive_of(entry: Entry) -> Applied<Directive> {
    match entry {
        Entry::Directive(directive) => Ok(directive),
        Entry::Rule(rule) => {
            let mut error = rule.origin.error("a rule is not allowed here");
            error.help = Some(String::from("it may stand in: http_chain"));
            Err(error)
        }
    }
}

/// The first value; its presence has been checked with the number of arguments.
fn first(directive: &Directive) -> &Term {
    directive.values.first().unwrap_or(&directive.name)
}
