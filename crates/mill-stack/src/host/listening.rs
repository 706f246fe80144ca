//! Opening listeners and accepting.

use crate::flow::{Flow, unmapped};
use crate::host::Host;
use crate::listener::Listener;
use crate::process_group::{Load, Others, ProcessGroup, Taker};
use crate::queue::SendQueue;
use crate::slot::SlotFlags;
use crate::socket::{ListenError, ListenOptions, ListenerId, SocketId, SocketOptions};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use mill_tcp::config::Config;

impl<Q: SendQueue> Host<Q> {
    /// Port 0 lets the host choose one. An IPv4 address that is mapped into IPv6 means the IPv4 address. Errors leave
    /// nothing behind.
    pub fn listen(
        &mut self,
        address: SocketAddr,
        options: &ListenOptions,
    ) -> Result<ListenerId, ListenError> {
        let address = unmapped(address);
        if !address.ip().is_unspecified() && !self.is_own(address.ip()) {
            return Err(ListenError::NotOurs);
        }
        let mut address = address;
        if address.port() == 0 {
            address.set_port(self.choose_listening_port(address)?);
        }
        let config = config_with(self.tcp_context.config(0), options);
        let config = self.tcp_context.number_of(config);
        let listener = self.listeners.insert(address, options, config)?;
        if let (Some(processes), Some(found)) =
            (&mut self.processes, self.listeners.at_mut(listener))
        {
            processes.join(address);
            found.is_in_group = true;
        }
        Ok(listener)
    }

    /// Hosts of other processes are on the same device. To be called before this one listens.
    pub fn set_process_group(&mut self, processes: Box<dyn ProcessGroup>) {
        debug_assert!(self.listeners.len() == 0, "they are in no group");
        self.processes = Some(processes);
    }

    /// Tells the other hosts how busy this one is, whose program has accepted so many connections and not closed them.
    pub fn tell_load(&mut self, accepted: u32) {
        let Some(processes) = &mut self.processes else {
            return;
        };
        self.listeners.each_load(|address, load, told| {
            let load = Load { accepted, ..load };
            if told.replace(load) != Some(load) {
                processes.note_load(address, load);
            }
        });
    }

    /// Whether the program lets connections wait here without a look: then new ones are other hosts' that listen at the same address, if
    /// any of these looks. Others hear of it with [`Self::tell_load`].
    pub fn set_neglected(&mut self, listener: ListenerId, is_neglected: bool) {
        if let Some(found) = self.listeners.at_mut(listener) {
            found.is_neglected = is_neglected;
        }
    }

    /// Which other hosts listen at the listener's address, whose programs look there.
    pub fn others(&mut self, listener: ListenerId) -> Others {
        let address = self.listeners.at(listener).map(|found| found.address);
        let processes = self.processes.as_mut().zip(address);
        processes.map_or_else(Others::default, |(processes, address)| {
            processes.others(address)
        })
    }

    /// The process that would get a new connection of this flow to the listener, if that is another one; it counts as having got it.
    pub fn give_to_other(&mut self, listener: ListenerId, flow: &Flow) -> Option<u64> {
        let address = self.listeners.at(listener)?.address;
        let processes = self.processes.as_mut()?;
        let taker = processes.taker(address, flow, true, &[]);
        let Taker::Another(process) = taker else {
            return None;
        };
        processes.note_given(address, flow, taker);
        Some(process)
    }

    /// New connections are other hosts' that listen at the same address, if there are any; those that have begun go on here.
    pub fn leave_group(&mut self, listener: ListenerId) {
        if let (Some(processes), Some(found)) =
            (&mut self.processes, self.listeners.at_mut(listener))
            && core::mem::take(&mut found.is_in_group)
        {
            processes.leave(found.address);
        }
    }

    /// What the listener's connections have from now on; those that have shaken hands keep what they had.
    pub fn set_listener_options(&mut self, listener: ListenerId, each: SocketOptions) {
        let Some(found) = self.listeners.at_mut(listener) else {
            return;
        };
        found.options.each = each;
        let config = config_with(self.tcp_context.config(0), &found.options);
        found.config = self.tcp_context.number_of(config);
    }

    /// How many connections may wait to be accepted from now on.
    pub fn set_listener_backlog(&mut self, listener: ListenerId, backlog: u32) {
        if let Some(found) = self.listeners.at_mut(listener) {
            found.options.backlog = backlog;
        }
    }

    /// How many connections may be open on the word of a Fast Open cookie from now on; `None` is off
    /// (`TCP_FASTOPEN`).
    pub fn set_listener_fast_open(&mut self, listener: ListenerId, waiting_max: Option<u32>) {
        if let Some(found) = self.listeners.at_mut(listener) {
            found.options.fast_open = waiting_max;
        }
    }

    /// Whether the listener is about to be closed: then SYNs are another one's, or another process's, else they are answered as where
    /// none listens; handshakes that have begun go on.
    pub fn set_listener_draining(&mut self, listener: ListenerId, is_draining: bool) {
        if let Some(found) = self.listeners.at_mut(listener) {
            found.is_draining = is_draining;
        }
    }

    /// What waits to be accepted is reset; half-open connections go to a listener that shares the address, if any.
    pub fn close_listener(&mut self, listener: ListenerId) {
        self.leave_group(listener);
        let Some(closed) = self.listeners.remove(listener) else {
            return;
        };
        for index in closed.waiting().iter().copied() {
            if let Some(slot) = self.slots.at(index) {
                self.abort(slot.id(index));
            }
        }
        for index in self.flows.syn_cache().of_listener(listener.0) {
            self.hand_over_half_open(index, &closed);
        }
    }

    /// How many handshakes of a listener are under way, of which it knows; not those that a cookie stands for.
    pub fn half_open(&self, listener: ListenerId) -> u32 {
        self.listeners
            .at(listener)
            .map_or(0, |listener| listener.half_open())
    }

    /// The address a listener has, with the port that was chosen.
    pub fn listener_address(&self, listener: ListenerId) -> Option<SocketAddr> {
        self.listeners.at(listener).map(|listener| listener.address)
    }

    /// Takes one waiting connection; its changes will be reported with `token`.
    pub fn accept(&mut self, listener: ListenerId, token: u64) -> Option<SocketId> {
        let index = self.listeners.at_mut(listener)?.take_waiting()?;
        let slot = self.slots.at_mut(index)?;
        debug_assert!(slot.flags.has(SlotFlags::UNACCEPTED));
        slot.flags.clear(SlotFlags::UNACCEPTED);
        slot.token = token;
        let socket = slot.id(index);
        // What has happened before is news for the owner.
        let has_news =
            !slot.unread.is_empty() || slot.error.is_some() || slot.flags.has(SlotFlags::FINISHED);
        if has_news {
            self.slots.mark_ready(index);
        }
        Some(socket)
    }

    /// How many connections wait to be accepted.
    pub fn waiting(&self, listener: ListenerId) -> usize {
        let listener = self.listeners.at(listener);
        listener.map_or(0, |listener| listener.waiting().len())
    }

    /// Appends the listeners that have connections to accept and were not reported since the last `accept` found
    /// none.
    pub fn take_acceptable(&mut self, into: &mut Vec<ListenerId>) {
        self.listeners.take_acceptable(into);
    }

    fn choose_listening_port(&mut self, address: SocketAddr) -> Result<u16, ListenError> {
        let flow = Flow::new(address, address);
        let key = self.secrets.port;
        let vacated = self.flows.vacated();
        let search = self.ports.search(&flow, key, false, vacated, self.now);
        let mut search = search.ok_or(ListenError::InUse)?;
        while let Some(port) = self.ports.next(&mut search) {
            if !self.listeners.has_port(port) {
                return Ok(port);
            }
        }
        Err(ListenError::InUse)
    }

    fn hand_over_half_open(&mut self, index: u32, closed: &Listener) {
        let Some(flow) = self.flows.syn_cache().at(index).map(|entry| entry.flow) else {
            return;
        };
        let heir = self.listeners.find(flow.local(), self.flows.hash(&flow));
        let sharing = heir.filter(|heir| {
            self.listeners
                .at(*heir)
                .is_some_and(|heir| heir.address == closed.address)
        });
        match sharing {
            Some(heir) => {
                if let Some(entry) = self.flows.half_open_mut(index) {
                    entry.listener = heir.0;
                }
                if let Some(heir) = self.listeners.at_mut(heir) {
                    heir.on_half_open();
                }
            }
            None => {
                self.flows.remove_half_open(index);
            }
        }
    }
}

/// The host's configuration with what the listener wants to be different.
fn config_with(own: &Config, options: &ListenOptions) -> Config {
    let mut config = own.clone();
    config.nodelay = options.nodelay;
    config_of_each(config, options.each)
}

/// A configuration with what one socket wants to be different.
pub(super) fn config_of_each(mut config: Config, options: SocketOptions) -> Config {
    config.mss_max = options.mss_max.or(config.mss_max);
    config.user_timeout = options.user_timeout.or(config.user_timeout);
    config.keepalive = options.keepalive.or(config.keepalive);
    if let Some(bytes) = options.receive_buffer_bytes {
        // As in Linux, a buffer that a program has set does not tune itself (`SOCK_RCVBUF_LOCK`).
        config.receive_buffer_bytes_max = bytes;
        config.receive_buffer_bytes = bytes;
    }
    config.congestion = options.congestion.unwrap_or(config.congestion);
    config.syn_retries_max = options.syn_retries_max.unwrap_or(config.syn_retries_max);
    config.dscp = options.dscp;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receive_buffer_that_a_program_sets_does_not_tune_itself() {
        for bytes in [5_000, 1 << 20, 16 << 20] {
            let options = SocketOptions {
                receive_buffer_bytes: Some(bytes),
                ..SocketOptions::default()
            };
            let config = config_of_each(Config::default(), options);
            let found = (config.receive_buffer_bytes, config.receive_buffer_bytes_max);
            assert_eq!(found, (bytes, bytes));
        }
        let untouched = config_of_each(Config::default(), SocketOptions::default());
        assert_eq!(untouched, Config::default());
    }
}
