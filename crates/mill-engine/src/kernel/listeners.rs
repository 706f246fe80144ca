//! The listeners.

use super::LISTENER_BIT;
use crate::offer;
use mill_runtime::address::Address;
use mill_runtime::engine::{Keepalive, ListenError, ListenOptions, ListenerId};
use mill_runtime::time::Duration;
use mill_sys::descriptor;
use mill_sys::epoll::{Epoll, Interest};
use mill_sys::listener::{self, Endpoint, ListenerOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The listening sockets of an engine, and those that were offered and not claimed yet.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    entries: Vec<Option<Entry>>,
    offered: Vec<(Vec<u8>, OwnedFd)>,
    /// A listener could not be added to the epoll set, for lack of memory or watches.
    incomplete: bool,
}

#[derive(Debug)]
struct Entry {
    descriptor: OwnedFd,
    address: Address,
    /// Other workers wait at the same socket.
    shared: bool,
    /// Whether it should be reported, and whether it is in the epoll set.
    accepting: bool,
    registered: bool,
}

impl Listeners {
    /// Keeps a socket until a listener of its key is opened. A second one of the same key replaces the first.
    pub(super) fn offer(&mut self, key: Vec<u8>, descriptor: OwnedFd) {
        self.offered.retain(|(other, _)| *other != key);
        self.offered.push((key, descriptor));
    }

    /// Takes the offered socket, or opens one.
    pub(super) fn open(&mut self, options: &ListenOptions) -> Result<ListenerId, ListenError> {
        let key = offer::encode(&options.address, options.share);
        let offered = self.offered.iter().position(|(other, _)| *other == key);
        let descriptor = match offered {
            Some(position) => {
                let descriptor = self.offered.swap_remove(position).1;
                // Its maker may have left it blocking: accepting would then wait when another worker has taken the
                // connection.
                descriptor::set_nonblocking(descriptor.as_fd(), true).map_err(|error| {
                    ListenError {
                        call: "fcntl()",
                        code: error.raw_os_error().unwrap_or(0),
                    }
                })?;
                descriptor
            }
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
            accepting: false,
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
        // Other descriptor tables may have duplicates: closing this one would leave it in the epoll set.
        self.set_accepting(epoll, id, false);
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            *entry = None;
        }
    }

    pub(super) fn set_accepting(&mut self, epoll: &Epoll, id: ListenerId, accepting: bool) {
        let Some(Some(entry)) = self.entries.get_mut(id.0 as usize) else {
            return;
        };
        entry.accepting = accepting;
        self.incomplete |= !entry.register(epoll, id.0);
    }

    /// Whether listeners are missing in the epoll set, which no event would show.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Retries to register every listener that should be reported.
    pub(super) fn complete(&mut self, epoll: &Epoll) {
        self.incomplete = false;
        for (entry, index) in self.entries.iter_mut().zip(0..) {
            if let Some(entry) = entry {
                self.incomplete |= !entry.register(epoll, index);
            }
        }
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

impl Entry {
    /// Makes the epoll set agree with `accepting`; false if that failed.
    fn register(&mut self, epoll: &Epoll, index: u32) -> bool {
        if self.registered == self.accepting {
            return true;
        }
        if !self.accepting {
            // Fails only if it is not in the set.
            let _ = epoll.remove(self.descriptor.as_fd());
            self.registered = false;
            return true;
        }
        let interest = Interest {
            readable: true,
            writable: false,
            edge: false,
            exclusive: self.shared,
        };
        let token = LISTENER_BIT | u64::from(index);
        self.registered = epoll.add(self.descriptor.as_fd(), interest, token).is_ok();
        self.registered
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_could_not_be_registered_is_tried_again() {
        let epoll = Epoll::new().unwrap();
        let mut listeners = Listeners::default();
        let options = ListenOptions::new(Address::Ip("127.0.0.1:0".parse().unwrap()));
        let id = listeners.open(&options).unwrap();
        // It is in the set already, so epoll_ctl fails as it does without memory.
        let elsewhere = Interest {
            readable: false,
            writable: false,
            edge: false,
            exclusive: false,
        };
        epoll
            .add(listeners.descriptor(id).unwrap(), elsewhere, 7)
            .unwrap();
        listeners.set_accepting(&epoll, id, true);
        assert!(listeners.is_incomplete());
        listeners.complete(&epoll);
        assert!(listeners.is_incomplete());
        epoll.remove(listeners.descriptor(id).unwrap()).unwrap();
        listeners.complete(&epoll);
        assert!(!listeners.is_incomplete());

        let Ok(mill_sys::address::Peer::Ip(address)) =
            mill_sys::socket::local_address(listeners.descriptor(id).unwrap())
        else {
            panic!("it has an address");
        };
        let _client = std::net::TcpStream::connect(address).unwrap();
        let mut buffer = [mill_sys::epoll::Event::EMPTY; 4];
        let reports = epoll
            .wait(&mut buffer, Some(Duration::from_secs(10)))
            .unwrap();
        assert_eq!(reports.len(), 1);
    }
}
