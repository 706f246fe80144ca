//! The near end of connections to servers: `…_bind` and `…_socket_…`, and which requests may share a connection.

use super::fault::{Fault, Step};
use super::tls::Securing;
use super::{Proxying, proxy_header};
use crate::local::Local;
use crate::log::{Errno, Text};
use crate::request::Request;
use crate::variables;
use mill_config::config::LogLevel;
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::{BindAddress, PassSettings};
use mill_config::config::upstream::Upstream;
use mill_runtime::address::Address;
use mill_runtime::engine::{ConnectOptions, Engine};
use mill_runtime::stream::StreamError;
use mill_upstream::pool::Scope;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// What the connections of a request are not shared across; `None` where any connection to the server will do.
pub(super) fn scope<E: Engine>(
    protocol: PassProtocol,
    settings: &PassSettings,
    securing: Option<&Securing>,
    group: &Upstream,
    request: &mut Request,
    local: &Local<E>,
) -> Option<Rc<Scope>> {
    let source = source(settings, request, local);
    let is_local = group.keepalive.local;
    let location = is_local.then(|| Arc::clone(&request.location));
    let header = proxy_header::of(request, protocol);
    let is_any = header.is_empty() && source.is_none() && !is_local && securing.is_none();
    (!is_any).then(|| {
        Rc::new(Scope {
            header,
            source,
            secured: securing.map(Securing::scope),
            location,
        })
    })
}

/// The address of `…_bind`. As in nginx, one that is none is logged, and the system chooses.
pub(super) fn source<E: Engine>(
    settings: &PassSettings,
    request: &mut Request,
    local: &Local<E>,
) -> Option<SocketAddr> {
    let template = match &settings.bind.as_ref()?.address {
        BindAddress::Fixed(address) => return Some(*address),
        BindAddress::Evaluated(template) => template,
    };
    let text = variables::evaluate(template, request, local);
    let address = BindAddress::parse(&text);
    if address.is_none() && !text.is_empty() {
        let line = format_args!("invalid local address \"{}\"", Text(&text));
        local.log_error(Some(request), LogLevel::Error, line);
    }
    address
}

/// The options of a new connection.
pub(super) fn connect_options(
    settings: &PassSettings,
    source: Option<SocketAddr>,
) -> ConnectOptions {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    ConnectOptions {
        source: source.map(Address::Ip),
        transparent: settings.bind.as_ref().is_some_and(|bind| bind.transparent),
        keepalive: settings.socket_keepalive,
        receive_buffer_bytes: settings.socket_rcvbuf.map(bytes),
        send_buffer_bytes: settings.socket_sndbuf.map(bytes),
        ..ConnectOptions::default()
    }
}

impl<E: Engine> Proxying<'_, E> {
    pub(super) fn connect_options(&self) -> ConnectOptions {
        connect_options(&self.settings, self.source())
    }

    fn source(&self) -> Option<SocketAddr> {
        self.scope.as_ref()?.source
    }

    /// Why a connection was not opened. A local address that cannot be had is no fault of the server: it is logged.
    pub(super) fn not_opened(&self, error: StreamError, request: &Request) -> Fault {
        let (StreamError::Other(code), Some(source)) = (error, self.source()) else {
            return Fault::NotConnected(error);
        };
        if !is_of_bind(code) {
            return Fault::NotConnected(error);
        }
        let (step, error) = (Step::Connecting.words(), Errno(code));
        if code == EPERM {
            let line = format_args!("setsockopt(IP_TRANSPARENT) failed ({error}) while {step}");
            self.local.log_error(Some(request), LogLevel::Alert, line);
        } else {
            let line = if source.port() == 0 {
                format!("bind({}) failed ({error}) while {step}", source.ip())
            } else {
                format!("bind({source}) failed ({error}) while {step}")
            };
            let line = format_args!("{line}");
            self.local.log_error(Some(request), LogLevel::Crit, line);
        }
        Fault::NotBound
    }
}

/// Linux's number (asm-generic/errno-base.h): the process may not use addresses of other machines.
const EPERM: i32 = 1;

/// Whether bind(2) says so of addresses: EPERM, EACCES, EINVAL, EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL.
pub(crate) const fn is_of_bind(code: i32) -> bool {
    matches!(code, EPERM | 13 | 22 | 97 | 98 | 99)
}
