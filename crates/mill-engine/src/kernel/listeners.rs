//! The listeners, and making one from options.

use super::LISTENER_BIT;
use crate::offer;
use mill_runtime::address::Address;
use mill_runtime::engine::{Keepalive, ListenError, ListenOptions, ListenerId};
use mill_runtime::time::Duration;
use mill_sys::epoll::{Epoll, Interest};
use mill_sys::listener::{self, Endpoint, ListenerOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The listening sockets of an engine, and those that were offered to it and not asked for yet.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    entries: Vec<Option<Entry>>,
    offered: Vec<(Vec<u8>, OwnedFd)>,
}

#[derive(Debug)]
struct Entry {
    descriptor: OwnedFd,
    address: Address,
    /// Other workers wait at the same socket.
    shared: bool,
    registered: bool,
}

impl Listeners {
    /// Keeps a socket until somebody listens with its key. A second one of the same key replaces the first.
    pub(super) fn offer(&mut self, key: Vec<u8>, descriptor: OwnedFd) {
        self.offered.retain(|(other, _)| *other != key);
        self.offered.push((key, descriptor));
    }

    /// Takes the offered socket, or opens one.
    pub(super) fn open(&mut self, options: &ListenOptions) -> Result<ListenerId, ListenError> {
        let key = offer::encode(&options.address, options.share);
        let offered = self.offered.iter().position(|(other, _)| *other == key);
        let descriptor = match offered {
            Some(position) => self.offered.swap_remove(position).1,
            None => listener::listen(endpoint(&options.address), &system_options(options))
                .map_err(|failed| ListenError {
                    call: failed.call,
                    code: failed.error.raw_os_error().unwrap_or(0),
                })?,
        };
        let entry = Entry {
            descriptor,
            address: options.address.clone(),
            shared: options.share.is_none(),
            registered: false,
        };
        let index = match self.entries.iter().position(Option::is_none) {
            Some(index) => index,
            None => {
                self.entries.push(None);
                self.entries.len() - 1
            }
        };
        if let Some(place) = self.entries.get_mut(index) {
            *place = Some(entry);
        }
        Ok(ListenerId(
            u32::try_from(index).expect("fewer than 2^32 listeners"),
        ))
    }

    pub(super) fn close(&mut self, epoll: &Epoll, id: ListenerId) {
        // Other tables may hold the same socket: closing ours would leave it in the epoll set.
        self.set_accepting(epoll, id, false);
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            *entry = None;
        }
    }

    pub(super) fn set_accepting(&mut self, epoll: &Epoll, id: ListenerId, accepting: bool) {
        let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) else {
            return;
        };
        if entry.registered == accepting {
            return;
        }
        let interest = Interest {
            readable: true,
            writable: false,
            edge: false,
            exclusive: entry.shared,
        };
        let result = if accepting {
            epoll.add(
                entry.descriptor.as_fd(),
                interest,
                LISTENER_BIT | u64::from(id.0),
            )
        } else {
            epoll.remove(entry.descriptor.as_fd())
        };
        // Fails for want of memory only; the next pause or resume tries again.
        entry.registered = if result.is_ok() {
            accepting
        } else {
            entry.registered
        };
    }

    pub(super) fn descriptor(&self, id: ListenerId) -> Option<BorrowedFd<'_>> {
        Some(
            self.entries
                .get(id.0 as usize)?
                .as_ref()?
                .descriptor
                .as_fd(),
        )
    }

    pub(super) fn address(&self, id: ListenerId) -> Option<Address> {
        Some(self.entries.get(id.0 as usize)?.as_ref()?.address.clone())
    }
}

pub(super) fn endpoint(address: &Address) -> Endpoint<'_> {
    match address {
        Address::Ip(address) => Endpoint::Ip(*address),
        Address::Unix(path) => Endpoint::Unix(path),
    }
}

fn system_options(options: &ListenOptions) -> ListenerOptions {
    let (keepalive, idle, interval, count) = match options.keepalive {
        Keepalive::System => (None, None, None, None),
        Keepalive::Off => (Some(false), None, None, None),
        Keepalive::On {
            idle,
            interval,
            count,
        } => (Some(true), idle, interval, count),
    };
    let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
    ListenerOptions {
        reuseport: options.share.is_some(),
        backlog: options.backlog,
        deferred: options.deferred,
        fastopen: options.fastopen,
        receive_buffer_bytes: options.receive_buffer_bytes,
        send_buffer_bytes: options.send_buffer_bytes,
        ipv6only: options.ipv6only,
        nodelay: options.nodelay,
        keepalive,
        keepalive_idle_s: idle.map(seconds),
        keepalive_interval_s: interval.map(seconds),
        keepalive_count: count,
    }
}
