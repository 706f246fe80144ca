//! `upstream`: groups of servers.

mod balancing;
mod keepalive;
mod queue;
mod server;
mod state;
mod sticky;
pub(crate) mod zone;

use std::sync::Arc;
use std::time::Duration;

use crate::Text;
use crate::config::settings::ResolverSettings;
use crate::config::{
    Balancing, NameServers, Sticky, Upstream, UpstreamKeepalive, UpstreamQueue, UpstreamServer,
    UpstreamZone,
};
use crate::directive::{Apply, Arity, Contexts, Directive, HTTP_AND_STREAM, many, once};
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};
use crate::value;

const UPSTREAM: Contexts = Contexts::UPSTREAM;

/// In http and in stream.
const EITHER: Contexts = UPSTREAM.and(Contexts::STREAM_UPSTREAM);

pub(crate) const DIRECTIVES: &[Directive] = &[
    many(
        "upstream",
        HTTP_AND_STREAM,
        Arity::Exactly(1),
        Apply::Block(upstream),
        "A group of servers that requests or connections are passed to.",
    ),
    many(
        "server",
        EITHER,
        Arity::AtLeast(1),
        Apply::With(server::server),
        "A server of the group: address, then weight=, max_conns=, max_fails=, fail_timeout=, backup, down, drain, slow_start=, route=, service=, resolve.",
    ),
    many(
        "hash",
        EITHER,
        Arity::Between(1, 2),
        Apply::With(balancing::hash),
        "The same server for the same key; with consistent few keys move when servers change.",
    ),
    many(
        "ip_hash",
        UPSTREAM,
        Arity::Exactly(0),
        Apply::With(balancing::ip_hash),
        "The same server for the same client.",
    ),
    many(
        "least_conn",
        EITHER,
        Arity::Exactly(0),
        Apply::With(balancing::least_conn),
        "The server with the fewest connections.",
    ),
    many(
        "least_time",
        UPSTREAM,
        Arity::Between(1, 2),
        Apply::With(balancing::least_time),
        "The server that answers fastest: header or last_byte; inflight counts requests under way too.",
    ),
    many(
        "random",
        EITHER,
        Arity::Between(0, 2),
        Apply::With(balancing::random),
        "Any server; with two the better of two, by least_conn or least_time.",
    ),
    once(
        "keepalive",
        UPSTREAM,
        Arity::Between(1, 2),
        "",
        Apply::With(keepalive::keepalive),
        "Most idle connections to servers that a worker keeps; with local for one location alone.",
    ),
    once(
        "keepalive_requests",
        UPSTREAM,
        Arity::Exactly(1),
        "1000",
        Apply::With(|r, s| {
            r.upstream.keepalive.requests = r.number(s)?;
            Ok(())
        }),
        "Most requests of a connection to a server.",
    ),
    once(
        "keepalive_time",
        UPSTREAM,
        Arity::Exactly(1),
        "1h",
        Apply::With(|r, s| {
            r.upstream.keepalive.time = r.read(s, value::milliseconds)?;
            Ok(())
        }),
        "Longest life of a connection to a server.",
    ),
    once(
        "keepalive_timeout",
        UPSTREAM,
        Arity::Exactly(1),
        "60s",
        Apply::With(|r, s| {
            r.upstream.keepalive.timeout = r.read(s, value::milliseconds)?;
            Ok(())
        }),
        "Longest idle time of a connection to a server.",
    ),
    many(
        "zone",
        EITHER,
        Arity::Between(1, 2),
        Apply::With(zone::zone),
        "Name and size of the group's shared memory. Workers share what they must with or without it.",
    ),
    once(
        "queue",
        UPSTREAM,
        Arity::Between(1, 2),
        "",
        Apply::With(queue::queue),
        "Most requests that wait for a server, and how long: timeout=, 60s if it is not written.",
    ),
    many(
        "sticky",
        UPSTREAM,
        Arity::AtLeast(2),
        Apply::With(sticky::sticky),
        "Requests of a session go to one server: by a cookie, by a route in variables, or as learnt from answers.",
    ),
    once(
        "state",
        UPSTREAM,
        Arity::Exactly(1),
        "",
        Apply::With(state::state),
        "The file that keeps the group's servers, in the place of server; the API writes it.",
    ),
];

/// A block before its end.
#[derive(Default)]
pub(crate) struct BlockDraft {
    pub(crate) servers: Vec<UpstreamServer>,
    balancing: Option<Balancing>,
    keepalive: UpstreamKeepalive,
    zone: Option<UpstreamZone>,
    queue: Option<UpstreamQueue>,
    sticky: Option<Sticky>,
    pub(crate) state: Option<Text>,
    pub(crate) name_servers: Option<Arc<NameServers>>,
    pub(crate) resolver_timeout: Option<Duration>,
}

impl BlockDraft {
    /// The group; `outer` are the settings of the http block.
    pub(crate) fn finish(self, index: usize, name: Text, outer: &ResolverSettings) -> Upstream {
        Upstream {
            index,
            name,
            port: 0,
            explicit: true,
            servers: self.servers,
            balancing: self.balancing.unwrap_or(Balancing::RoundRobin),
            keepalive: self.keepalive,
            zone: self.zone,
            queue: self.queue,
            sticky: self.sticky,
            state: self.state,
            name_servers: self.name_servers.or_else(|| outer.name_servers.clone()),
            resolver_timeout: self.resolver_timeout.unwrap_or(outer.timeout),
        }
    }
}

fn upstream(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    let index = resolver.open_upstream(statement)?;
    let outer = std::mem::take(&mut resolver.level);
    resolver.upstream = BlockDraft::default();
    let context = match resolver.is_in_stream() {
        true => Contexts::STREAM_UPSTREAM,
        false => Contexts::UPSTREAM,
    };
    let parsed = resolver.block(statement, context);
    resolver.level = outer;
    parsed?;
    let block = std::mem::take(&mut resolver.upstream);
    if block.servers.is_empty() && block.state.is_none() {
        return Err(resolver.at_position("no servers are inside upstream", ""));
    }
    resolver.close_upstream(index, block);
    Ok(())
}
