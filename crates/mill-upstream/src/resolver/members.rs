//! The servers behind a name that may change while they are used: `server NAME resolve`, with `service=` or without.

use super::Resolver;
use super::addresses::Services;
use super::error::ResolveError;
use super::message::Service;
use mill_runtime::time::{Duration, Instant};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;

/// What is followed: a `server` of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedName {
    pub host: Box<[u8]>,
    /// Of all addresses, unless SRV records say it.
    pub port: u16,
    /// `service=`.
    pub service: Option<Box<[u8]>>,
    pub backup: bool,
}

/// A server that the name stands for at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    pub address: SocketAddr,
    pub backup: bool,
    /// Of an SRV record, at least 1.
    pub weight: Option<u16>,
}

/// What there is to say of a followed name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members<'a> {
    /// From now on it stands for these, in order; for none if it does not exist.
    Are(&'a BTreeSet<Member>),
    /// It could not be resolved. If it does not exist, [`Members::Are`] follows, else the former ones stay.
    Failed(ResolveError),
}

impl Resolver {
    /// Keeps up with a name for ever: asks when the former answer ends, once in a second at most, and tells the members
    /// when they have changed. A name that does not exist is asked for again after nginx's 10 seconds or `valid=`; after
    /// any other failure it is after `timeout` (`resolver_timeout`).
    pub async fn follow(
        self: Rc<Self>,
        name: FollowedName,
        timeout: Duration,
        mut tell: impl FnMut(Members<'_>),
    ) {
        let mut former: Option<BTreeSet<Member>> = None;
        loop {
            let found = self.members(&name, timeout).await;
            let now = self.scheduler.now();
            let (members, pause) = match found {
                Ok((members, valid_until)) => (Some(members), valid_until.since(now)),
                Err(error) => {
                    tell(Members::Failed(error));
                    match error {
                        ResolveError::NotFound => {
                            (Some(BTreeSet::new()), self.retry_missing_after())
                        }
                        _ => (None, timeout),
                    }
                }
            };
            if members.is_some() && members != former {
                former = members;
                former
                    .iter()
                    .for_each(|members| tell(Members::Are(members)));
            }
            self.scheduler.sleep(pause.max(PAUSE_MIN)).await;
        }
    }

    /// The members now, and until when.
    async fn members(
        self: &Rc<Self>,
        name: &FollowedName,
        timeout: Duration,
    ) -> Result<(BTreeSet<Member>, Instant), ResolveError> {
        let Some(service) = &name.service else {
            let found = self.resolve(&name.host, timeout).await?;
            let member = |ip| Member {
                address: SocketAddr::new(ip, name.port),
                backup: name.backup,
                weight: None,
            };
            let members = found.iter().take(MEMBERS_MAX).map(member).collect();
            return Ok((members, found.valid_until()));
        };
        let services = self.resolve_service(service, &name.host, timeout).await?;
        self.members_of(&services, name.backup, timeout).await
    }

    /// The addresses of the targets. A target that does not exist is passed over; any other failure is one of the service.
    async fn members_of(
        self: &Rc<Self>,
        services: &Services,
        backup: bool,
        timeout: Duration,
    ) -> Result<(BTreeSet<Member>, Instant), ResolveError> {
        let mut members = BTreeSet::new();
        let mut valid_until = services.valid_until;
        for (service, backup) in used(&services.all, backup) {
            let found = match self.resolve(service.target.as_bytes(), timeout).await {
                Ok(found) => found,
                Err(ResolveError::NotFound) => continue,
                Err(error) => return Err(error),
            };
            valid_until = valid_until.min(found.valid_until());
            let room = MEMBERS_MAX - members.len();
            members.extend(found.iter().take(room).map(|ip| Member {
                address: SocketAddr::new(ip, service.port),
                backup,
                weight: Some(service.weight.max(1)),
            }));
        }
        if members.is_empty() {
            return Err(ResolveError::NotFound);
        }
        Ok((members, valid_until))
    }
}

/// The records that are used, and whether as backups: those of the lowest number of priority serve, the others are their
/// backups. Of a backup server only the former are used.
fn used(services: &[Service], backup: bool) -> impl Iterator<Item = (&Service, bool)> {
    let least = services.iter().map(|service| service.priority).min();
    let classed = services.iter().map(move |service| {
        let is_first = Some(service.priority) == least;
        (service, is_first)
    });
    classed
        .filter(move |(_, is_first)| *is_first || !backup)
        .map(move |(service, is_first)| (service, backup || !is_first))
}

/// Between two questions for a name, whatever its time to live; nginx's timer for `resolve`.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// Servers that one name may stand for.
const MEMBERS_MAX: usize = 512;
