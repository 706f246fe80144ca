//! `limit_req` of hot answers: they are counted like all others, before they are given.
//!
//! A request that is to be refused or to wait is not counted here: it takes the way that all others take. So a hot answer may
//! be limited by keys that are known before there is a request: text, the name of the server, the host, and the client's
//! address. Any other key makes its request impure (`variables/purity.rs`), and so does `limit_conn`.

use crate::limits::LimitedRequests;
use crate::limits::requests::{AtOnce, Counting};
use crate::local::Local;
use crate::request::Request;
use crate::request::limit_req::now_ms;
use crate::site::Site;
use crate::variables::{self, connection};
use mill_config::config::settings::LimitReqSettings;
use mill_config::config::{Part, RequestLimit, Template, Variable};
use mill_runtime::address::Address;
use mill_runtime::engine::Engine;
use std::fmt;
use std::sync::Arc;

/// The limits of the location in which the request of a hot answer was counted.
pub(crate) struct HotLimits {
    site: Arc<Site>,
    settings: Arc<LimitReqSettings>,
    /// One for each limit.
    keys: Box<[HotKey]>,
}

/// What a key is made of, in order.
type HotKey = Box<[HotPart]>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum HotPart {
    Text(Box<[u8]>),
    /// `$binary_remote_addr`, `$binary_remote_net`, `$remote_addr`.
    BinaryAddress,
    BinaryNetwork,
    Address,
}

/// Whether a hot answer can make the key of its requests.
pub(crate) fn is_of_connection(key: &Template, request: &Request) -> bool {
    let is_known = |part: &Part| match part {
        Part::Literal(_) => true,
        Part::Variable(variable) => matches!(
            variable,
            Variable::BinaryRemoteAddr
                | Variable::BinaryRemoteNet
                | Variable::RemoteAddr
                | Variable::ServerName
                | Variable::Host
        ),
        Part::Capture(_) => false,
    };
    request.location.real_ip.from.is_empty()
        && request.overrides.is_empty()
        && key.parts().iter().all(is_known)
}

impl HotLimits {
    /// Those by which the request was counted; `None` if there are none.
    pub(crate) fn of<E: Engine>(request: &mut Request, local: &Local<E>) -> Option<Box<Self>> {
        let settings = Arc::clone(request.limited.as_ref()?.counted_by.as_ref()?);
        let site = Arc::clone(&request.site);
        let key = |limit: &RequestLimit| {
            let zone = site.limits.requests.get(limit.zone);
            let parts = zone.into_iter().flat_map(|zone| zone.config.key.parts());
            parts
                .map(|part| HotPart::of(part, request, local))
                .collect()
        };
        let keys = settings.limits.iter().map(key).collect();
        Some(Box::new(Self {
            keys,
            site,
            settings,
        }))
    }

    /// Counts a request of this client; false if it has to be refused or delayed, and then it is not counted.
    pub(crate) fn pass<E: Engine>(&self, client: &Address, local: &Local<E>) -> bool {
        let now_ms = now_ms(local.scheduler.now());
        let mut buffer = local.take_buffer();
        let is_passed = self.pass_all(client, now_ms, &mut buffer, local);
        local.put_buffer(buffer);
        is_passed
    }

    fn pass_all<E: Engine>(
        &self,
        client: &Address,
        now_ms: u64,
        key: &mut Vec<u8>,
        local: &Local<E>,
    ) -> bool {
        let count = self.keys.len();
        // Nearly always there is one limit, and this stays empty.
        let mut pending = Vec::new();
        let mut is_passed = true;
        for index in 0..count {
            let Some((zone, counting)) = self.counting(index, now_ms) else {
                continue;
            };
            key.clear();
            let parts = self.keys.get(index).into_iter().flatten();
            parts.for_each(|part| part.emit(client, key));
            if key.is_empty() {
                continue;
            }
            let is_last = index + 1 == count;
            match zone.table.pass_at_once(key, &counting, is_last, local) {
                AtOnce::Counted => {}
                AtOnce::Pending(place) => pending.push((index, place)),
                AtOnce::No => {
                    is_passed = false;
                    break;
                }
            }
        }
        for (index, place) in pending {
            match self.counting(index, now_ms) {
                Some((zone, counting)) if is_passed => {
                    zone.table.count(place, &counting);
                }
                Some((zone, _)) => zone.table.release(place),
                None => {}
            }
        }
        is_passed
    }

    fn counting(&self, index: usize, now_ms: u64) -> Option<(&LimitedRequests, Counting<'_>)> {
        let limit = self.settings.limits.get(index)?;
        let zone = self.site.limits.requests.get(limit.zone)?;
        let counting = Counting {
            limit,
            rate: zone.config.rate,
            now_ms,
            dry_run: self.settings.dry_run,
        };
        Some((zone, counting))
    }
}

impl HotPart {
    fn of<E: Engine>(part: &Part, request: &mut Request, local: &Local<E>) -> Self {
        match part {
            Part::Variable(Variable::BinaryRemoteAddr) => Self::BinaryAddress,
            Part::Variable(Variable::BinaryRemoteNet) => Self::BinaryNetwork,
            Part::Variable(Variable::RemoteAddr) => Self::Address,
            part => {
                let text = Template::from_parts([part.clone()]);
                Self::Text(variables::evaluate(&text, request, local).into())
            }
        }
    }

    fn emit(&self, client: &Address, key: &mut Vec<u8>) {
        match self {
            Self::Text(text) => key.extend_from_slice(text),
            Self::BinaryAddress => connection::emit_binary(client, key),
            Self::BinaryNetwork => connection::emit_binary_network(client, key),
            Self::Address => connection::emit_host(client, key),
        }
    }
}

impl fmt::Debug for HotLimits {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HotLimits({:?})", self.keys)
    }
}
