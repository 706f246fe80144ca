//! The listeners of a worker: those that a configuration adds, and those that it closes.

use super::Run;
use crate::listener_context::{ListenerContext, address_of};
use crate::site::Site;
use mill_config::config::{ListeningSocket, LogLevel, SocketKeepalive};
use mill_runtime::engine::{DrainListener, Keepalive, ListenOptions, ListenerId, Orphans};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The worker's listeners.
#[derive(Debug, Default)]
pub(super) struct Listeners(pub(super) RefCell<Vec<Entry>>);

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: ListenerId,
    options: ListenOptions,
    context: Rc<ListenerContext>,
}

impl<E, F, Accepted> Run<E, F, Accepted>
where
    E: DrainListener + Orphans,
    F: Future<Output = ()>,
    Accepted: FnMut(E::Stream, ListenerId) -> F,
{
    /// The listener as it is, or a new one.
    pub(super) fn listener(
        &mut self,
        site: &Arc<Site>,
        listener: usize,
        options: ListenOptions,
    ) -> Result<Entry, String> {
        let known = {
            let mut entries = self.listeners.0.borrow_mut();
            let same = |entry: &Entry| {
                entry.options.address == options.address && entry.options.share == options.share
            };
            entries
                .iter()
                .position(same)
                .map(|position| entries.swap_remove(position))
        };
        if let Some(known) = known {
            self.closing.retain(|id| *id != known.id);
            self.worker.engine().keep_listener(known.id);
            known.context.set(site, listener);
            return Ok(Entry { options, ..known });
        }
        let listening = self.worker.engine().listen(&options).map_err(|error| {
            format!(
                "{} for {} failed (error {})",
                error.call, options.address, error.code
            )
        })?;
        for option in &listening.unsupported {
            self.local.log_error(
                None,
                LogLevel::Warn,
                format_args!(
                    "{option:?} is not available for {}, ignored",
                    options.address
                ),
            );
        }
        let context = ListenerContext::new(listening.id.0, site, listener)
            .ok_or_else(|| String::from("the configuration has no such listener"))?;
        self.worker.add_listener(listening.id);
        Ok(Entry {
            id: listening.id,
            options,
            context: Rc::new(context),
        })
    }

    /// Closes a listener once no connection waits in its queue; until then it is served as before.
    pub(super) fn close(&mut self, entry: Entry) {
        entry.context.retire();
        self.closing.push(entry.id);
        self.listeners.0.borrow_mut().push(entry);
        self.close_what_can_be();
    }

    pub(super) fn close_what_can_be(&mut self) {
        let mut closing = std::mem::take(&mut self.closing);
        closing.retain(|id| {
            let closed = self.worker.close_listener(*id);
            if closed {
                self.listeners.remove(*id);
            }
            !closed
        });
        self.closing = closing;
    }
}

impl Listeners {
    /// Removes a listener. Its connections still hold its context.
    fn remove(&self, id: ListenerId) {
        self.0.borrow_mut().retain(|entry| entry.id != id);
    }

    pub(super) fn context(&self, id: ListenerId) -> Rc<ListenerContext> {
        let entries = self.0.borrow();
        let found = entries.iter().find(|entry| entry.id == id);
        Rc::clone(
            &found
                .expect("a listener is closed before it is forgotten")
                .context,
        )
    }
}

/// The engine's options for a configured listener.
pub fn listen_options(socket: &ListeningSocket<'_>, share: Option<u32>) -> ListenOptions {
    let options = socket.options;
    let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
    ListenOptions {
        address: address_of(socket.address),
        share,
        backlog: options.backlog,
        deferred: options.deferred,
        fastopen: options.fastopen,
        receive_buffer_bytes: options.receive_buffer_bytes.map(bytes),
        send_buffer_bytes: options.send_buffer_bytes.map(bytes),
        keepalive: match options.so_keepalive {
            SocketKeepalive::System => Keepalive::System,
            SocketKeepalive::Off => Keepalive::Off,
            SocketKeepalive::On(probes) => Keepalive::On {
                idle: probes.idle,
                interval: probes.interval,
                count: probes.count,
            },
        },
        ipv6only: Some(options.ipv6only),
        nodelay: socket.tcp_nodelay,
    }
}
