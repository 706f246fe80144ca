//! From chains and locations to tables: which named location answers a request.
//!
//! A chain is evaluated rule by rule, and the first one that matches decides; where none does, the request is dropped. A
//! `map` evaluates its value only when it is taken, and that may be another variable. So each rule is a `map` whose
//! default is the variable of the next rule, and the last value is the name of a location. Rules in a row that look at the
//! same part of a request share a `map`, as far as its order (equal texts, then expressions as they stand) is theirs.
//!
//! Marks, `cache_disable` and `cache_ttl` change what follows and do not end the evaluation. What is in force is known for
//! each place of each chain, so it needs no variable: a chain has one row of maps for each [`State`] in which it is
//! reached.

use std::collections::BTreeMap;

use super::ordering::{self, Order, key_of};
use super::pattern;
use super::site::{
    Action, Chain, ChainRule, Condition, Nonidempotent, Pattern, Site, Source, Vhost,
};
use crate::resolve::Applied;
use crate::resolve::draft::Origin;

/// Most variables that are evaluated inside each other; the evaluation itself ends at 100, as nginx's does.
const DEPTH_MAX: usize = 80;

/// Most maps of a configuration.
const TABLES_MAX: usize = 8192;

/// What the rules before have set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) mark: u32,
    pub(super) no_cache: bool,
    pub(super) ttl: Option<u32>,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Goal {
    /// The index of the vhost and of its location, what is in force, and whether the request must not be repeated.
    Pass {
        vhost: usize,
        location: Option<usize>,
        state: State,
        once: bool,
    },
    /// No rule matched.
    Drop,
    /// `block`, or a purge from an address that is not listed.
    Block,
    /// The index of the chain and of its rule.
    Redirect(usize, usize),
}

/// A goal that is known, or the variable that names its location.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Goal(Goal),
    Variable(String),
}

/// One `map`.
pub(super) struct Table {
    pub(super) origin: Origin,
    pub(super) source: Vec<u8>,
    /// Its name with `$`.
    pub(super) variable: String,
    /// Keys as `map` has them, and what follows.
    pub(super) rows: Vec<(Vec<u8>, Target, Origin)>,
    pub(super) default: Target,
}

/// The way of all requests.
pub(super) struct Routes {
    pub(super) start: Target,
    /// Each before those that name it.
    pub(super) tables: Vec<Table>,
    /// All goals, each once.
    pub(super) goals: Vec<Goal>,
}

/// The variable of the source of a purge: 1 if it may.
pub(super) const PURGER: &str = "$tempesta_purger";

/// The method and whether a purge is allowed.
pub(super) const PURGE_SOURCE: &str = "$request_method:$tempesta_purger";

/// What a table is apart from its name and place: its source, its rows and its default.
type Content = (Vec<u8>, Vec<(Vec<u8>, Target)>, Target);

struct Router<'a> {
    site: &'a Site,
    tables: Vec<Table>,
    /// Their variables: states that differ in nothing that matters have the same tables.
    variables: BTreeMap<Content, String>,
    known: BTreeMap<Place, Target>,
    goals: Vec<Goal>,
}

/// A rule, by the numbers of its chain and in that, and what those before it have set.
type Place = (usize, usize, State);

/// Where a request goes on.
enum Step {
    To(Place),
    Ends(Target),
}

/// Computes the tables of a site.
pub(super) fn routes(site: &Site) -> Applied<Routes> {
    let mut router = Router {
        site,
        tables: Vec::new(),
        variables: BTreeMap::new(),
        known: BTreeMap::new(),
        goals: Vec::new(),
    };
    let mut start = match site.main_chain {
        Some(main) => router.chain(main, 0, State::default(), 0)?,
        // No chain is the main one. As in Tempesta FW, it is the default vhost then, if no chain leads to that already.
        None if leads_to_default(site) => router.goal(Goal::Drop),
        None => router.vhost(0, State::default(), &site.origin)?,
    };
    if let Some(origin) = &site.cache.purge {
        let block = router.goal(Goal::Block);
        let rows = vec![(b"PURGE:0".to_vec(), block, origin.clone())];
        start = router.table(origin, PURGE_SOURCE.into(), rows, start)?;
    }
    if let Target::Variable(variable) = &mut start {
        // No other table leads to the one that requests begin with.
        let mut tables = router.tables.iter_mut();
        if let Some(table) = tables.find(|table| table.variable == *variable) {
            *variable = String::from("$tempesta_route");
            table.variable.clone_from(variable);
        }
    }
    Ok(Routes {
        start,
        tables: router.tables,
        goals: router.goals,
    })
}

fn leads_to_default(site: &Site) -> bool {
    let mut rules = site.chains.iter().flat_map(|chain| &chain.rules);
    rules.any(|rule| matches!(rule.action, Action::Vhost(0)))
}

impl Router<'_> {
    /// What happens from a rule of a chain on. Rules that need no table are followed in a loop: there may be thousands in a row.
    fn chain(&mut self, chain: usize, from: usize, state: State, depth: usize) -> Applied<Target> {
        let mut followed = Vec::new();
        let mut place = (chain, from, state);
        let target = loop {
            if let Some(known) = self.known.get(&place) {
                break known.clone();
            }
            followed.push(place);
            match self.follow(place, depth)? {
                Step::To(next) => place = next,
                Step::Ends(target) => break target,
            }
        };
        let places = followed.into_iter();
        self.known
            .extend(places.map(|place| (place, target.clone())));
        Ok(target)
    }

    /// One rule.
    fn follow(&mut self, (chain, from, state): Place, depth: usize) -> Applied<Step> {
        let site = self.site;
        let rules = site.chains.get(chain).map(|chain: &Chain| &chain.rules);
        let Some((rules, rule)) = rules.and_then(|rules| Some((rules, rules.get(from)?))) else {
            return Ok(Step::Ends(self.goal(Goal::Drop)));
        };
        if depth >= DEPTH_MAX {
            let message = format!(
                "more than {DEPTH_MAX} rules one after the other that look at different parts of a request"
            );
            let mut error = rule.origin.error(message);
            error.help = Some(String::from(
                "rules in a row about the same part count once: sort them by it where their order allows",
            ));
            return Err(error);
        }
        match &rule.condition {
            Condition::Always => self.act(chain, from, state),
            Condition::Mark(mark) => {
                let holds = match mark {
                    _ if state.mark == 0 => false,
                    Some(mark) => state.mark == *mark,
                    None => true,
                };
                match holds == rule.negated {
                    true => Ok(Step::To((chain, from + 1, state))),
                    false => self.act(chain, from, state),
                }
            }
            Condition::Field(_) => self.run(chain, from, rules, state, depth).map(Step::Ends),
        }
    }

    /// A table for as many rules as one can be for.
    fn run(
        &mut self,
        chain: usize,
        from: usize,
        rules: &[ChainRule],
        state: State,
        depth: usize,
    ) -> Applied<Target> {
        let Some((rule, source)) = rules.get(from).and_then(|rule| {
            let Condition::Field(comparison) = &rule.condition else {
                return None;
            };
            Some((rule, &comparison.source))
        }) else {
            return Ok(self.goal(Goal::Drop));
        };
        let count = run_len(rules, from, source);
        let rest = self.chain(chain, from + count, state, depth + 1)?;
        let mut rows: Vec<(Vec<u8>, Target, Origin)> = Vec::new();
        for (index, rule) in rules.iter().enumerate().skip(from).take(count) {
            let Condition::Field(comparison) = &rule.condition else {
                continue;
            };
            let target = match self.act(chain, index, state)? {
                Step::To((chain, from, state)) => self.chain(chain, from, state, depth + 1)?,
                Step::Ends(target) => target,
            };
            let key = key_of(&comparison.pattern);
            // Of two equal ones the first one counts.
            if !rows.iter().any(|(known, ..)| *known == key) {
                rows.push((key, target, rule.origin.clone()));
            }
        }
        match (rule.negated, rows.as_mut_slice()) {
            (true, [(_, target, _)]) => {
                let taken = std::mem::replace(target, rest);
                self.table(&rule.origin, source.0.clone(), rows, taken)
            }
            _ => self.table(&rule.origin, source.0.clone(), rows, rest),
        }
    }

    /// What a rule does to requests that match it.
    fn act(&mut self, chain: usize, index: usize, state: State) -> Applied<Step> {
        let site = self.site;
        let rules = site.chains.get(chain).map(|chain| &chain.rules);
        let Some(rule) = rules.and_then(|rules| rules.get(index)) else {
            return Ok(Step::Ends(self.goal(Goal::Drop)));
        };
        let next = |state: State| Ok(Step::To((chain, index + 1, state)));
        match rule.action {
            Action::Block => Ok(Step::Ends(self.goal(Goal::Block))),
            Action::Redirect(..) => Ok(Step::Ends(self.goal(Goal::Redirect(chain, index)))),
            Action::Vhost(vhost) => self.vhost(vhost, state, &rule.origin).map(Step::Ends),
            Action::Chain(other) => Ok(Step::To((other, 0, state))),
            Action::Mark(mark) => next(State { mark, ..state }),
            Action::CacheDisable(no_cache) => next(State { no_cache, ..state }),
            Action::CacheTtl(ttl) => next(State {
                ttl: Some(ttl),
                ..state
            }),
        }
    }

    /// The first location of a vhost that matches, or the vhost itself.
    fn vhost(&mut self, index: usize, state: State, origin: &Origin) -> Applied<Target> {
        let site = self.site;
        let Some(vhost) = site.vhosts.get(index) else {
            return Ok(self.goal(Goal::Drop));
        };
        // A mark is for rules only.
        let state = State { mark: 0, ..state };
        let mut default = self.place(index, vhost, None, state)?;
        let mut items = Vec::new();
        for (number, location) in vhost.locations.iter().enumerate() {
            let target = self.place(index, vhost, Some(number), state)?;
            items.push((&location.path, target));
        }
        let Order { runs, rest } = ordering::order(items)?;
        default = rest.unwrap_or(default);
        for rows in runs.into_iter().rev() {
            default = self.table(origin, b"$request_uri".to_vec(), rows, default)?;
        }
        Ok(default)
    }

    /// A location of a vhost, or two of it: requests that are not idempotent have one of their own.
    fn place(
        &mut self,
        index: usize,
        vhost: &Vhost,
        location: Option<usize>,
        state: State,
    ) -> Applied<Target> {
        let policies = super::policies::of(self.site, vhost, location);
        if policies.pass().is_none() {
            return Ok(self.goal(Goal::Drop));
        }
        let goal = |once| Goal::Pass {
            vhost: index,
            location,
            state,
            once,
        };
        let usual = self.goal(goal(false));
        let definitions: Vec<&Nonidempotent> = policies.nonidempotent().collect();
        let Some(first) = definitions.first() else {
            return Ok(usual);
        };
        let origin = first.path.text.origin.clone();
        let once = self.goal(goal(true));
        let rows = definitions.into_iter().map(|definition| {
            let method = match &definition.method {
                None => b"[A-Z]+".to_vec(),
                Some(method) => pattern::quote(&method.bytes.to_ascii_uppercase()),
            };
            let path = pattern::path_source(&definition.path);
            let key = [&b"~*^"[..], &method, b" ", &path].concat();
            (key, once.clone(), definition.path.text.origin.clone())
        });
        let rows = rows.collect();
        self.table(
            &origin,
            b"$request_method $request_uri".to_vec(),
            rows,
            usual,
        )
    }

    /// A table, unless all of it leads to one target.
    fn table(
        &mut self,
        origin: &Origin,
        source: Vec<u8>,
        rows: Vec<(Vec<u8>, Target, Origin)>,
        default: Target,
    ) -> Applied<Target> {
        if rows.iter().all(|(_, target, _)| *target == default) {
            return Ok(default);
        }
        let keys = rows
            .iter()
            .map(|(key, target, _)| (key.clone(), target.clone()));
        let content = (source.clone(), keys.collect(), default.clone());
        if let Some(variable) = self.variables.get(&content) {
            return Ok(Target::Variable(variable.clone()));
        }
        if self.tables.len() >= TABLES_MAX {
            let message = format!("the rules need more than {TABLES_MAX} tables");
            return Err(origin.error(message));
        }
        let variable = format!("$tempesta_route_{}", self.tables.len() + 1);
        self.variables.insert(content, variable.clone());
        self.tables.push(Table {
            origin: origin.clone(),
            source,
            variable: variable.clone(),
            rows,
            default,
        });
        Ok(Target::Variable(variable))
    }

    fn goal(&mut self, goal: Goal) -> Target {
        if !self.goals.contains(&goal) {
            self.goals.push(goal);
        }
        Target::Goal(goal)
    }
}

/// How many rules from the first one on look at the same part, in an order that a `map` keeps.
fn run_len(rules: &[ChainRule], from: usize, source: &Source) -> usize {
    let Some(first) = rules.get(from) else {
        return 0;
    };
    if first.negated {
        return 1;
    }
    let mut has_regex = false;
    let fits = |rule: &&ChainRule| {
        let Condition::Field(comparison) = &rule.condition else {
            return false;
        };
        let is_regex = matches!(comparison.pattern, Pattern::Regex(_));
        let fits = !rule.negated && comparison.source == *source && (is_regex || !has_regex);
        has_regex |= is_regex;
        fits
    };
    rules.iter().skip(from).take_while(fits).count()
}
