//! The listening sockets of the master: those that are open, those that a configuration needs, and how to get from one
//! set to the other without closing a socket whose queue may hold connections.
//!
//! Invariant: a socket that a configuration still needs is never closed, only duplicated; nor is one of several that
//! share a port, even if there are fewer worker threads than sockets.

use crate::message::ListeningSocket;
use crate::process_log::{ProcessLog, describe};
use mill_config::config::{ListenAddress, ListenOptions, LogLevel, SocketKeepalive};
use mill_config::diagnostic::Spot;
use mill_sys::descriptor;
use mill_sys::listener::{self, Endpoint, ListenerError, ListenerOptions};
use std::ffi::OsStr;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

/// What a configuration needs at one address.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub address: ListenAddress,
    pub options: ListenOptions,
    pub origin: Origin,
}

/// Where an address is configured: an error message points there.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A `listen` of a configuration.
    Listen(Spot),
    /// `--port` and `--listen`.
    Options,
}

/// The listening sockets.
#[derive(Debug, Default)]
pub struct Listening {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    socket: ListeningSocket,
    /// As it was opened; `None` for one inherited from another binary.
    options: Option<ListenOptions>,
}

/// How to open sockets.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Worker threads: so many sockets share a port with `reuseport`.
    pub threads: u32,
    /// Only test whether they could be opened (`-t`): an address in use is no error then.
    pub test: bool,
    /// How often an address in use is tried, half a second apart: [`BIND_ATTEMPTS`]. Only the last failure is logged.
    pub attempts: u32,
}

/// A socket could not be opened; the reasons are in the log.
#[derive(Debug)]
pub struct NotBound;

impl Listening {
    /// Takes over the descriptors that the old binary left open. It is an error if one is no listening socket.
    pub fn inherit(descriptors: Vec<OwnedFd>) -> io::Result<Self> {
        let mut listening = Self::default();
        for descriptor in descriptors {
            let (address, descriptor) = address_of(descriptor)?;
            let twins = listening.shares(&address);
            listening.entries.push(Entry {
                socket: ListeningSocket {
                    address,
                    share: u32::try_from(twins).ok(),
                    descriptor,
                },
                options: None,
            });
        }
        // A socket that is the only one of its address does not share its port.
        let exclusive: Vec<bool> = listening
            .entries
            .iter()
            .map(|entry| listening.shares(&entry.socket.address) == 1)
            .collect();
        for (entry, exclusive) in listening.entries.iter_mut().zip(exclusive) {
            if exclusive {
                entry.socket.share = None;
            }
        }
        Ok(listening)
    }

    /// The sockets for another configuration: duplicates of the open ones where the address stays, new ones elsewhere.
    /// The open ones are not changed, so an error leaves everything as it was.
    pub fn reopen(
        &self,
        wanted: &[Wanted],
        opening: Opening,
        log: &ProcessLog,
    ) -> Result<Self, NotBound> {
        for attempt in 0..opening.attempts {
            if attempt > 0 {
                pause(BIND_PAUSE);
            }
            let is_last = attempt + 1 == opening.attempts;
            let mut next = Self::default();
            let mut in_use = false;
            for wanted in wanted {
                match self.open_address(wanted, opening, log) {
                    Ok(entries) => next.entries.extend(entries),
                    Err(failed) => {
                        let address_in_use = failed.error.kind() == io::ErrorKind::AddrInUse;
                        let is_reported = !address_in_use || (is_last && !opening.test);
                        if is_reported {
                            log_failure(wanted, &failed, log);
                        }
                        let is_final = is_reported && matches!(wanted.origin, Origin::Options);
                        if !address_in_use || is_final {
                            return Err(NotBound);
                        }
                        in_use = !opening.test;
                    }
                }
            }
            if !in_use {
                return Ok(next);
            }
        }
        Err(NotBound)
    }

    /// Duplicates of all sockets, to be passed in a message.
    pub fn duplicate(&self) -> io::Result<Vec<ListeningSocket>> {
        self.entries
            .iter()
            .map(|entry| duplicate(&entry.socket))
            .collect()
    }

    /// The descriptors, for a new binary.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.entries
            .iter()
            .map(|entry| entry.socket.descriptor.as_fd())
    }

    /// Removes the files of Unix sockets that are not in `next`; all of them without a `next`.
    pub fn remove_files(&self, next: Option<&Self>, log: &ProcessLog) {
        for entry in &self.entries {
            let ListenAddress::Unix(path) = &entry.socket.address else {
                continue;
            };
            if next.is_some_and(|next| next.shares(&entry.socket.address) > 0) {
                continue;
            }
            if next.is_some() {
                log.write(
                    LogLevel::Warn,
                    &format!("deleting socket {}", path.display()),
                );
            }
            if let Err(error) = std::fs::remove_file(path_of(path)) {
                let what = format!("unlink() {} failed {}", path.display(), describe(&error));
                log.write(LogLevel::Emerg, &what);
            }
        }
    }

    /// The number of sockets at an address.
    fn shares(&self, address: &ListenAddress) -> usize {
        self.at(address).count()
    }

    fn at<'a>(&'a self, address: &'a ListenAddress) -> impl Iterator<Item = &'a Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.socket.address == *address)
    }

    /// The sockets at one address: the open ones, and as many more as are needed.
    fn open_address(
        &self,
        wanted: &Wanted,
        opening: Opening,
        log: &ProcessLog,
    ) -> Result<Vec<Entry>, ListenerError> {
        let mut entries = Vec::new();
        for present in self.at(&wanted.address) {
            let entry = take_over(present, wanted, log)?;
            entries.push(entry);
        }
        let shareable =
            wanted.options.reuseport && matches!(wanted.address, ListenAddress::Inet(_));
        let count = if shareable {
            opening.threads.max(1) as usize
        } else {
            1
        };
        if let ([only], true) = (entries.as_mut_slice(), shareable)
            && only.socket.share.is_none()
        {
            let present = only.socket.descriptor.as_fd();
            listener::set_reuseport(present).map_err(failed("setsockopt(SO_REUSEPORT)"))?;
            only.socket.share = Some(0);
        }
        if entries.len() > 1 && !shareable {
            let what = format!(
                "{} keeps its {} sockets: \"reuseport\" can be removed by a restart only",
                wanted.address,
                entries.len()
            );
            log.write(LogLevel::Notice, &what);
        }
        while entries.len() < count {
            let share = if shareable {
                u32::try_from(entries.len()).ok()
            } else {
                None
            };
            let descriptor = open(wanted, share, opening.test)?;
            entries.push(Entry {
                socket: ListeningSocket {
                    address: wanted.address.clone(),
                    share,
                    descriptor,
                },
                options: Some(wanted.options.clone()),
            });
            if opening.test {
                // For a test one socket is enough.
                break;
            }
        }
        Ok(entries)
    }
}

/// A duplicate of an open socket; the options that can be changed on it are.
fn take_over(present: &Entry, wanted: &Wanted, log: &ProcessLog) -> Result<Entry, ListenerError> {
    let socket = duplicate(&present.socket).map_err(failed("dup()"))?;
    if present.options.as_ref() != Some(&wanted.options) {
        let options = system_options(&wanted.options, false);
        let endpoint = endpoint(&wanted.address);
        listener::listen_on(socket.descriptor.as_fd(), options.backlog)
            .map_err(failed("listen()"))?;
        listener::set_listening_options(socket.descriptor.as_fd(), endpoint, &options)?;
    }
    if let Some(before) = &present.options {
        for option in fixed_options(before, &wanted.options) {
            let what = format!(
                "\"{option}\" of {} can be changed by a restart only",
                wanted.address
            );
            log.write(LogLevel::Notice, &what);
        }
    }
    Ok(Entry {
        socket,
        options: Some(wanted.options.clone()),
    })
}

/// Changed options that cannot be applied to an open socket.
fn fixed_options(before: &ListenOptions, after: &ListenOptions) -> Vec<&'static str> {
    let changes = [
        ("deferred", before.deferred && !after.deferred),
        (
            "fastopen",
            before.fastopen.is_some() && after.fastopen.is_none(),
        ),
        (
            "rcvbuf",
            before.receive_buffer_bytes != after.receive_buffer_bytes,
        ),
        (
            "sndbuf",
            before.send_buffer_bytes != after.send_buffer_bytes,
        ),
        ("ipv6only", before.ipv6only != after.ipv6only),
    ];
    changes
        .into_iter()
        .filter(|(_, changed)| *changed)
        .map(|(name, _)| name)
        .collect()
}

fn open(wanted: &Wanted, share: Option<u32>, test: bool) -> Result<OwnedFd, ListenerError> {
    let endpoint = endpoint(&wanted.address);
    // The first socket of a port is bound without SO_REUSEPORT: with it, another server that shares its port would go
    // unnoticed, and would get a part of the connections.
    let joins = share.is_some_and(|share| share > 0);
    let options = system_options(&wanted.options, joins);
    let descriptor = listener::listen(endpoint, &options)?;
    if share == Some(0) {
        listener::set_reuseport(descriptor.as_fd()).map_err(failed("setsockopt(SO_REUSEPORT)"))?;
    }
    if let ListenAddress::Unix(path) = &wanted.address {
        if test {
            std::fs::remove_file(path_of(path)).map_err(failed("unlink()"))?;
        } else {
            // As nginx: whatever may reach the directory may connect.
            let all_users = std::fs::Permissions::from_mode(0o666);
            std::fs::set_permissions(path_of(path), all_users).map_err(failed("chmod()"))?;
        }
    }
    Ok(descriptor)
}

fn system_options(options: &ListenOptions, reuseport: bool) -> ListenerOptions {
    let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (keepalive, probes) = match options.so_keepalive {
        SocketKeepalive::System => (None, None),
        SocketKeepalive::Off => (Some(false), None),
        SocketKeepalive::On(probes) => (Some(true), Some(probes)),
    };
    ListenerOptions {
        reuseport,
        backlog: options.backlog,
        deferred: options.deferred,
        fastopen: options.fastopen,
        receive_buffer_bytes: options.receive_buffer_bytes.map(bytes),
        send_buffer_bytes: options.send_buffer_bytes.map(bytes),
        ipv6only: Some(options.ipv6only),
        // Responses are written whole; Nagle's algorithm would only delay the last segment.
        nodelay: true,
        keepalive,
        keepalive_idle_s: probes.and_then(|probes| probes.idle).map(seconds),
        keepalive_interval_s: probes.and_then(|probes| probes.interval).map(seconds),
        keepalive_count: probes.and_then(|probes| probes.count),
    }
}

fn log_failure(wanted: &Wanted, failed: &ListenerError, log: &ProcessLog) {
    let (address, why) = (&wanted.address, describe(&failed.error));
    let what = match failed.call {
        "bind()" => format!("bind() to {address} failed {why}"),
        call => format!("{call} {address} failed {why}"),
    };
    match &wanted.origin {
        Origin::Listen(spot) => {
            log.write(LogLevel::Emerg, &format!("{what}, \"listen\" in {spot}"))
        }
        Origin::Options => {
            let help = match failed.error.kind() {
                io::ErrorKind::AddrInUse => ": choose another port with \"--port\"",
                io::ErrorKind::PermissionDenied => {
                    ": ports below 1024 take root, choose another with \"--port\""
                }
                io::ErrorKind::AddrNotAvailable => {
                    ": this machine has no such address, choose another with \"--listen\""
                }
                _ => "",
            };
            log.write(LogLevel::Emerg, &format!("{what}{help}"));
        }
    }
}

fn duplicate(socket: &ListeningSocket) -> io::Result<ListeningSocket> {
    Ok(ListeningSocket {
        address: socket.address.clone(),
        share: socket.share,
        descriptor: socket.descriptor.try_clone()?,
    })
}

/// The address that an inherited socket is bound to, asked of it as a TCP and as a Unix socket.
fn address_of(descriptor: OwnedFd) -> io::Result<(ListenAddress, OwnedFd)> {
    let socket = TcpListener::from(descriptor);
    if let Ok(address) = socket.local_addr() {
        return Ok((ListenAddress::Inet(address), socket.into()));
    }
    let socket = UnixListener::from(OwnedFd::from(socket));
    let address = socket.local_addr()?;
    let path = address.as_pathname().ok_or(io::ErrorKind::InvalidInput)?;
    let address = ListenAddress::Unix(path.as_os_str().as_bytes().into());
    Ok((address, socket.into()))
}

fn endpoint(address: &ListenAddress) -> Endpoint<'_> {
    match address {
        ListenAddress::Inet(address) => Endpoint::Ip(*address),
        ListenAddress::Unix(path) => Endpoint::Unix(path),
    }
}

fn path_of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

fn failed(call: &'static str) -> impl Fn(io::Error) -> ListenerError {
    move |error| ListenerError { call, error }
}

fn pause(time: Duration) {
    // Waits for the time only; an error would only make the pause shorter.
    let _ = descriptor::wait_readable(&[], Some(time));
}

/// How often an address in use is tried (nginx's): the old process may be about to end.
pub const BIND_ATTEMPTS: u32 = 5;

/// The pause between attempts (nginx's).
const BIND_PAUSE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
