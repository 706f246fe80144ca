//! Inheritance in the `stream` block, and its sockets.

use std::sync::Arc;

use super::finish::{defaults, user_variables};
use super::listeners::{is_wildcard, same_port};
use crate::config::settings::Settings;
use crate::config::{
    ListenAddress, Main, PassTarget, Stream, StreamHandler, StreamHost, StreamListener,
    StreamServer, Template, Upstream,
};
use crate::directives::pass::target::PassTargetDraft;
use crate::directives::stream::HandlerDraft;
use crate::directives::upstream::zone;
use crate::resolve::draft::{AddressDraft, HttpDraft, ServerDraft};
use crate::resolve::{Applied, Resolver};

/// Makes the block from what has been parsed.
pub(super) fn finish(
    resolver: &mut Resolver<'_>,
    mut open: HttpDraft,
    main: &Main,
) -> Applied<Stream> {
    let mut outer = defaults(resolver, main);
    outer.log = log_settings(&outer);
    let settings = std::mem::take(&mut open.level.settings).inherit(&outer);
    let drafts = std::mem::take(&mut open.upstreams);
    let upstreams = resolver.finish_upstreams(drafts, &settings.resolver)?;
    let drafts = std::mem::take(&mut open.servers).into_iter();
    let servers: Vec<Arc<StreamServer>> = drafts
        .map(|draft| Arc::new(server(draft, &settings, &upstreams.by_draft)))
        .collect();
    let user_variables = user_variables(&mut resolver.stream_variables)?;
    zone::check(&open.zones)?;
    let mut tls_passes = Vec::new();
    for server in servers
        .iter()
        .filter(|server| server.settings.stream.proxy_ssl)
    {
        let settings = &server.settings.proxy_tls;
        if !tls_passes.iter().any(|known| Arc::ptr_eq(known, settings)) {
            tls_passes.push(Arc::clone(settings));
        }
    }
    Ok(Stream {
        listeners: listeners(&open.addresses, &servers),
        servers,
        log_formats: open.log_formats,
        upstreams: upstreams.groups,
        connection_zones: open.connection_zones.finish(),
        tls_passes,
        maps: open.maps,
        user_variables,
    })
}

/// No access log unless one is written.
fn log_settings(outer: &Settings) -> Arc<crate::config::settings::LogSettings> {
    Arc::new(crate::config::settings::LogSettings {
        error_logs: outer.log.error_logs.clone(),
        ..Default::default()
    })
}

fn server(mut draft: ServerDraft, outer: &Settings, groups: &[Arc<Upstream>]) -> StreamServer {
    let handler = match draft.stream.handler.take() {
        Some(HandlerDraft::Ready(handler)) => handler,
        Some(HandlerDraft::Pass(target)) => StreamHandler::Pass(pass_target(target, groups)),
        // A block without a handler was refused at its end.
        None => StreamHandler::Return(Template::default()),
    };
    StreamServer {
        index: draft.index,
        settings: draft.level.settings.inherit(outer),
        handler,
        assignments: draft.stream.assignments,
    }
}

fn pass_target(target: PassTargetDraft, groups: &[Arc<Upstream>]) -> PassTarget {
    match target {
        PassTargetDraft::Evaluated(template) => PassTarget::Evaluated(template),
        PassTargetDraft::Group(index) => match groups.get(index) {
            Some(group) => PassTarget::Group(Arc::clone(group)),
            None => PassTarget::Evaluated(Template::default()),
        },
    }
}

/// One listener per socket: addresses without options of their own are served by the wildcard socket of their port, if
/// there is one.
fn listeners(addresses: &[AddressDraft], servers: &[Arc<StreamServer>]) -> Vec<StreamListener> {
    let is_hidden = |draft: &AddressDraft| {
        let behind = |other: &AddressDraft| {
            is_wildcard(&other.address) && same_port(&other.address, &draft.address)
        };
        !draft.options.bind && !is_wildcard(&draft.address) && addresses.iter().any(behind)
    };
    let host = |draft: &AddressDraft| {
        let server = servers.get(draft.default_server)?;
        Some(StreamHost {
            server: Arc::clone(server),
            proxy_protocol: draft.options.proxy_protocol,
            ssl: draft.options.ssl,
        })
    };
    let specific = |draft: &AddressDraft| {
        let hidden = addresses.iter().filter(|other| is_hidden(other));
        let behind = hidden.filter(|other| same_port(&draft.address, &other.address));
        let of_address = behind.filter_map(|other| match &other.address {
            ListenAddress::Inet(address) => Some((address.ip(), host(other)?)),
            ListenAddress::Unix(_) => None,
        });
        of_address.collect()
    };
    let open = addresses.iter().filter(|draft| !is_hidden(draft));
    let listeners = open.filter_map(|draft| {
        Some(StreamListener {
            address: draft.address.clone(),
            options: draft.options.clone(),
            spot: draft.spot.clone(),
            host: host(draft)?,
            specific: match is_wildcard(&draft.address) {
                true => specific(draft),
                false => Vec::new(),
            },
        })
    });
    listeners.collect()
}
