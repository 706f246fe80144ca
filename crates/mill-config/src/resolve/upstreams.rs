//! Groups of servers by name: blocks, and hosts that have none.

use std::sync::Arc;

use crate::Text;
use crate::config::settings::ResolverSettings;
use crate::config::{Upstream, UpstreamAddress, UpstreamKeepalive, UpstreamServer, UpstreamTarget};
use crate::directives::upstream::BlockDraft;
use crate::lexer::Statement;
use crate::resolve::draft::Origin;
use crate::resolve::{Applied, Resolver};
use crate::url::Url;

/// A group that was named at least once.
pub(crate) struct UpstreamDraft {
    pub(crate) host: Text,
    /// 0 for a block, and where neither the address nor its protocol has one.
    pub(crate) port: u16,
    /// Written with a port.
    has_port: bool,
    address: Option<UpstreamAddress>,
    /// The first place that names it.
    pub(crate) origin: Origin,
    /// Present if there is a block, at the latest at the end of the configuration.
    pub(crate) block: Option<BlockDraft>,
}

/// All groups.
pub(crate) struct Groups {
    /// Blocks first.
    pub(crate) groups: Vec<Arc<Upstream>>,
    /// What each draft became.
    pub(crate) by_draft: Vec<Arc<Upstream>>,
}

impl Resolver<'_> {
    /// The group that an address without variables means, and the parts of the address.
    pub(crate) fn upstream_of<'u>(
        &mut self,
        statement: &Statement,
        text: &'u [u8],
        default_port: u16,
        takes_uri: bool,
    ) -> Applied<(usize, Url<'u>)> {
        let word = statement.arg(1);
        let url = Url::parse(text, default_port, takes_uri).map_err(|fault| {
            let shown = String::from_utf8_lossy(text);
            let message = format!("{fault} in upstream \"{shown}\"");
            self.emerg(statement, word, message)
        })?;
        let has_port = url.port_text.is_some();
        if let Some((index, known)) = self.known_upstream(url.host, url.port) {
            if known.block.is_some() && has_port {
                let shown = known.host.display();
                let message = format!("upstream \"{shown}\" may not have port {}", url.port);
                return Err(self.emerg(statement, word, message));
            }
            return Ok((index, url));
        }
        let index = self.add_upstream(UpstreamDraft {
            host: Text::from(url.host),
            port: url.port,
            has_port,
            address: url.address.clone(),
            origin: Origin::of(statement, word),
            block: None,
        });
        Ok((index, url))
    }

    /// Opens the block of a group; its index.
    pub(crate) fn open_upstream(&mut self, statement: &Statement) -> Applied<usize> {
        let word = statement.arg(1);
        let origin = Origin::of(statement, word);
        let Some((index, known)) = self.known_upstream(&word.bytes, 0) else {
            return Ok(self.add_upstream(UpstreamDraft {
                host: Text::from(word.bytes.as_slice()),
                port: 0,
                has_port: false,
                address: None,
                origin,
                block: Some(BlockDraft::default()),
            }));
        };
        if known.block.is_some() {
            let message = format!("duplicate upstream \"{}\"", word.display());
            return Err(self.emerg(statement, word, message));
        }
        if known.has_port {
            let (shown, port) = (word.display(), known.port);
            let message = format!("upstream \"{shown}\" may not have port {port}");
            return Err(known.origin.error(message));
        }
        self.close_upstream(index, BlockDraft::default());
        Ok(index)
    }

    /// Gives a group its block.
    pub(crate) fn close_upstream(&mut self, index: usize, block: BlockDraft) {
        let groups = self.http.as_mut().map(|http| &mut http.upstreams);
        if let Some(known) = groups.and_then(|groups| groups.get_mut(index)) {
            known.port = 0;
            known.address = None;
            known.block = Some(block);
        }
    }

    /// As in nginx, a block has the name for itself, and hosts with different ports are different groups.
    fn known_upstream(&self, host: &[u8], port: u16) -> Option<(usize, &UpstreamDraft)> {
        let known = self.http.iter().flat_map(|http| &http.upstreams);
        known.enumerate().find(|(_, known)| {
            let is_same_port = known.port == 0 || port == 0 || known.port == port;
            is_same_port && known.host.eq_ignore_ascii_case(host)
        })
    }

    fn add_upstream(&mut self, draft: UpstreamDraft) -> usize {
        let Some(http) = &mut self.http else {
            return 0;
        };
        http.upstreams.push(draft);
        http.upstreams.len() - 1
    }

    /// The groups of all drafts.
    pub(crate) fn finish_upstreams(
        &self,
        drafts: Vec<UpstreamDraft>,
        outer: &ResolverSettings,
    ) -> Applied<Groups> {
        let mut order: Vec<(usize, UpstreamDraft)> = drafts.into_iter().enumerate().collect();
        order.sort_by_key(|(_, draft)| draft.block.is_none());
        let mut groups = Vec::new();
        let mut by_draft = Vec::new();
        for (index, (at, draft)) in order.into_iter().enumerate() {
            let group = Arc::new(self.finish_upstream(index, draft, outer)?);
            by_draft.push((at, Arc::clone(&group)));
            groups.push(group);
        }
        by_draft.sort_by_key(|(at, _)| *at);
        let by_draft = by_draft.into_iter().map(|(_, group)| group).collect();
        Ok(Groups { groups, by_draft })
    }

    fn finish_upstream(
        &self,
        index: usize,
        draft: UpstreamDraft,
        outer: &ResolverSettings,
    ) -> Applied<Upstream> {
        let shown = draft.host.display().into_owned();
        if let Some(block) = draft.block {
            if block.state.is_none() && block.servers.iter().all(|server| server.backup) {
                let message = format!("no servers in upstream \"{shown}\"");
                return Err(draft.origin.error(message));
            }
            let is_resolved = block.servers.iter().any(UpstreamServer::is_resolved);
            let group = block.finish(index, draft.host, outer);
            if is_resolved && group.name_servers.is_none() {
                let message = format!(
                    "no resolver defined to resolve names at run time in upstream \"{shown}\""
                );
                return Err(draft.origin.error(message));
            }
            return Ok(group);
        }
        if draft.port == 0 && !matches!(draft.address, Some(UpstreamAddress::Unix(_))) {
            let message = format!("no port in upstream \"{shown}\"");
            return Err(draft.origin.error(message));
        }
        let addresses = match draft.address {
            Some(address) => vec![address],
            None => self.addresses_of(&draft.host, draft.port),
        };
        if addresses.is_empty() {
            let message = format!("host not found in upstream \"{shown}\"");
            return Err(draft.origin.error(message));
        }
        let name = match addresses.first() {
            Some(UpstreamAddress::Unix(path)) => Text::from([b"unix:", path.as_bytes()].concat()),
            _ => {
                Text::from([draft.host.as_bytes(), format!(":{}", draft.port).as_bytes()].concat())
            }
        };
        let server = UpstreamServer::new(name, UpstreamTarget::Addresses(addresses));
        Ok(Upstream {
            port: draft.port,
            explicit: false,
            servers: vec![server],
            keepalive: UpstreamKeepalive::default(),
            ..BlockDraft::default().finish(index, draft.host, outer)
        })
    }

    /// The addresses of a name, with a port; none if it is not found.
    pub(crate) fn addresses_of(&self, host: &[u8], port: u16) -> Vec<UpstreamAddress> {
        let found = self.source.resolve(host).into_iter();
        found
            .map(|address| UpstreamAddress::Ip((address, port).into()))
            .collect()
    }
}
