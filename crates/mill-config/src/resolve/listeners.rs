//! From addresses to sockets, and the names of the servers behind each.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::Text;
use crate::config::listen::Listener;
use crate::config::{ListenAddress, LogLevel, Server, ServerName, ServerNames, VirtualHosts};
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::resolve::draft::{AddressDraft, ServerDraft};
use crate::resolve::{Applied, Resolver};

impl Resolver<'_> {
    /// One listener per socket. Addresses without options of their own are served by the wildcard socket of their port,
    /// if there is one.
    pub(crate) fn listeners(
        &mut self,
        addresses: &[AddressDraft],
        drafts: &[ServerDraft],
        servers: &[Arc<Server>],
    ) -> Applied<Vec<Listener>> {
        let mut listeners = Vec::new();
        let hidden = |draft: &AddressDraft| {
            !draft.options.bind
                && !is_wildcard(&draft.address)
                && addresses.iter().any(|other| {
                    is_wildcard(&other.address) && same_port(&other.address, &draft.address)
                })
        };
        for draft in addresses {
            if hidden(draft) {
                continue;
            }
            let Some(hosts) = self.virtual_hosts(draft, drafts, servers)? else {
                continue;
            };
            let mut specific = Vec::new();
            if is_wildcard(&draft.address) {
                let behind = addresses
                    .iter()
                    .filter(|other| hidden(other) && same_port(&draft.address, &other.address));
                for other in behind {
                    if let (ListenAddress::Inet(address), Some(hosts)) =
                        (&other.address, self.virtual_hosts(other, drafts, servers)?)
                    {
                        specific.push((address.ip(), hosts));
                    }
                }
            }
            listeners.push(Listener {
                address: draft.address.clone(),
                options: draft.options.clone(),
                spot: draft.spot.clone(),
                hosts,
                specific,
            });
        }
        Ok(listeners)
    }

    fn virtual_hosts(
        &mut self,
        draft: &AddressDraft,
        drafts: &[ServerDraft],
        servers: &[Arc<Server>],
    ) -> Applied<Option<VirtualHosts>> {
        let mut names = ServerNames::default();
        // As nginx: one server answers for all names, unless its captures are needed.
        let is_alone = draft.servers.len() == 1;
        for &index in &draft.servers {
            let (Some(server_draft), Some(server)) = (drafts.get(index), servers.get(index)) else {
                continue;
            };
            for (place, name) in server_draft.names.iter().enumerate() {
                if is_alone && !matches!(name, ServerName::Pattern(_)) {
                    continue;
                }
                let inserted = insert_name(&mut names, name, server);
                if inserted == Some(true) {
                    continue;
                }
                let (problem, level, ending) = match inserted {
                    None => ("invalid server name or wildcard", LogLevel::Emerg, ""),
                    Some(_) => ("conflicting server name", LogLevel::Warn, ", ignored"),
                };
                let text = server_draft.name_texts.get(place).map(Text::display);
                let text = text.unwrap_or_default();
                let message = format!("{problem} \"{text}\" on {}{ending}", draft.address);
                let mut diagnostic = Diagnostic::new(level, message, SourcePosition::None);
                if let Some(Some(origin)) = server_draft.name_origins.get(place) {
                    origin.show_in(&mut diagnostic);
                }
                if level == LogLevel::Emerg {
                    return Err(Box::new(diagnostic));
                }
                self.remarks.push(diagnostic);
            }
        }
        let mut of_address = draft.servers.iter().filter_map(|index| servers.get(*index));
        let enabled = of_address.any(|server| server.location.http2.enabled);
        let default = servers.get(draft.default_server).cloned();
        Ok(default.map(|default| VirtualHosts {
            default,
            names,
            proxy_protocol: draft.options.proxy_protocol,
            ssl: draft.options.ssl,
            http2: draft.options.http2 || enabled,
            http2_of_address: draft.options.http2,
        }))
    }
}

/// False when the name is taken, `None` when it is malformed.
fn insert_name(
    names: &mut ServerNames<Arc<Server>>,
    name: &ServerName,
    server: &Arc<Server>,
) -> Option<bool> {
    let server = Arc::clone(server);
    Some(match name {
        ServerName::Exact(name) if name.contains(&b'*') => return None,
        ServerName::Exact(name) => names.insert_exact(name.clone(), server),
        ServerName::Domain(name) if malformed(name) => return None,
        ServerName::Domain(name) => {
            if names.has_exact(name) || names.has_below(name) {
                false
            } else {
                names.insert_exact(name.clone(), Arc::clone(&server))
                    && names.insert_below(name.clone(), server)
            }
        }
        ServerName::Below(name) | ServerName::Prefix(name) if malformed(name) => return None,
        ServerName::Below(name) => names.insert_below(name.clone(), server),
        ServerName::Prefix(name) => names.insert_prefix(name.clone(), server),
        ServerName::Pattern(pattern) => {
            names.push_pattern(Arc::clone(pattern), server);
            true
        }
    })
}

/// A second star, or an empty label.
fn malformed(name: &[u8]) -> bool {
    name.contains(&b'*') || name.windows(2).any(|pair| pair == b"..")
}

pub(super) fn is_wildcard(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Inet(address) if address.ip().is_unspecified())
}

pub(super) fn same_port(a: &ListenAddress, b: &ListenAddress) -> bool {
    match (a, b) {
        (ListenAddress::Inet(a), ListenAddress::Inet(b)) => {
            a.port() == b.port()
                && matches!(
                    (a, b),
                    (SocketAddr::V4(_), SocketAddr::V4(_)) | (SocketAddr::V6(_), SocketAddr::V6(_))
                )
        }
        _ => false,
    }
}
