//! A server on one of the networks, and the place of its clients.

use crate::namespace::{in_namespace, text_of};
use crate::origin::Origin;
use crate::server::{self, Server, Site, wait_for};
use crate::topology::{self, Topology, between};
use mill_sys::signal::Signal;
use std::cell::Cell;
use std::fs;
use std::net::SocketAddr;

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Kernel,
    Tap,
    AfXdp,
}

/// A server with TLS at 443 and without at 80, both with HTTP/2; certificates are for `a.example`, by `ca.pem`.
pub(crate) struct Stage<'a> {
    pub(crate) site: Site,
    server: Option<Server>,
    network: Network,
    /// Where the server's namespace is not the clients'.
    topology: Option<&'a Topology>,
    configuration: Cell<u32>,
    origin: Origin,
}

/// Runs a test as three: over every network.
macro_rules! on_every_network {
    ($check:ident) => {
        #[test]
        fn over_kernel_sockets() {
            crate::stage::set(crate::stage::Network::Kernel, $check);
        }

        #[test]
        fn over_tap() {
            crate::stage::set(crate::stage::Network::Tap, $check);
        }

        #[test]
        fn over_af_xdp() {
            crate::stage::set(crate::stage::Network::AfXdp, $check);
        }
    };
}

pub(crate) use on_every_network;

/// Runs a test with a server on this network, which has to end in order behind it.
pub(crate) fn set(network: Network, test: impl FnOnce(&Stage<'_>) + Send) {
    let run = |topology: Option<&Topology>| {
        let mut stage = Stage::raise(network, topology);
        test(&stage);
        let log = stage.site.error_log();
        let server = stage.server.take().unwrap();
        assert!(server.end(Signal::Quit).success(), "{log}");
    };
    match network {
        Network::AfXdp => between(1500, |topology| run(Some(topology))),
        Network::Kernel | Network::Tap => in_namespace(|| run(None)),
    }
}

impl<'a> Stage<'a> {
    fn raise(network: Network, topology: Option<&'a Topology>) -> Self {
        let site = Site::new();
        certify(&site);
        fs::write(site.path("zero"), "").unwrap();
        let origin = Origin::start();
        let conf = configure(&site, origin.address(), 1);
        let stack = match network {
            Network::Kernel => None,
            Network::Tap => Some(server::STACK),
            Network::AfXdp => Some(topology::STACK),
        };
        let words = stack.map(|stack| ["--stack", stack]);
        let server = Server::configured(&site, &conf, words.as_ref().map_or(&[], |words| words));
        Self {
            site,
            server: Some(server),
            network,
            topology,
            configuration: Cell::new(1),
            origin,
        }
    }

    /// Runs something where clients are.
    pub(crate) fn at_client<T>(&self, run: impl FnOnce() -> T) -> T {
        match self.topology {
            Some(topology) => topology.at_client(run),
            None => run(),
        }
    }

    /// The server's address as clients see it.
    pub(crate) const fn host(&self) -> &'static str {
        match self.network {
            Network::Kernel => "127.0.0.1",
            Network::Tap => "10.77.0.2",
            Network::AfXdp => topology::HOSTS[0],
        }
    }

    pub(crate) fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.host().parse().unwrap(), port)
    }

    /// Has the server read its configuration again, in which `/generation` says another number.
    pub(crate) fn reload(&self) {
        let number = self.configuration.get() + 1;
        self.configuration.set(number);
        configure(&self.site, self.origin.address(), number);
        self.signal(Signal::Hangup);
        let line = format!("configuration {number} is in force");
        wait_for(|| self.site.error_log().contains(&line));
    }

    fn signal(&self, signal: Signal) {
        self.server.as_ref().unwrap().signal(signal);
    }

    /// Asks the server to end when its requests are answered.
    pub(crate) fn quit(&self) {
        self.signal(Signal::Quit);
    }

    /// Fails if the kernel had a part in connections that the stack has to carry.
    pub(crate) fn assert_carried(&self) {
        if self.network != Network::Kernel {
            for port in [80, 443] {
                assert_eq!(topology::kernel_connections(port), "");
            }
        }
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("the error log:\n{}", self.site.error_log());
        }
    }
}

/// An authority `ca.pem`, and `a.pem` with `a.key` that it has certified for `a.example`.
fn certify(site: &Site) {
    let folder = site.path("").display().to_string();
    fs::write(site.path("names"), "subjectAltName=DNS:a.example\n").unwrap();
    let key = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256";
    for line in [
        format!("req -x509 {key} -keyout DIR/ca.key -out DIR/ca.pem -days 30 -subj /CN=ca"),
        format!("req {key} -keyout DIR/a.key -out DIR/a.csr -subj /CN=a.example"),
        "x509 -req -in DIR/a.csr -CA DIR/ca.pem -CAkey DIR/ca.key -CAcreateserial -out DIR/a.pem -days 30 -extfile DIR/names"
            .to_owned(),
    ] {
        let line = line.replace("DIR/", &folder);
        text_of("openssl", &line.split(' ').collect::<Vec<_>>());
    }
}

/// Where a server of gRPC would be, behind.
pub(crate) const GRPC: &str = "127.0.0.1:50051";

/// Writes the configuration, whose number `/generation` tells.
fn configure(site: &Site, origin: SocketAddr, generation: u32) -> String {
    let text = format!(
        "http2 on; keepalive_requests 100000; client_max_body_size 0; open_file_cache max=10;
         types {{ text/html html; text/css css; text/javascript js; image/svg+xml svg; }}
         server {{ listen 80; listen 443 ssl; ssl_certificate {folder}a.pem; ssl_certificate_key {folder}a.key;
         location = /generation {{ return 200 {generation}; }}
         location = /values {{ return 200 \"$ssl_protocol $server_protocol $host\"; }}
         location = /nothing {{ return 204; }}
         location = /few {{ keepalive_requests 3; return 200 few; }}
         location /mill.Test/ {{ grpc_pass {GRPC}; }}
         location /behind/ {{ proxy_http_version 1.1; proxy_pass http://{origin}/; early_hints 1; proxy_pass_trailers on; }}
         location /streamed/ {{ proxy_http_version 1.1; proxy_pass http://{origin}/; proxy_request_buffering off; }} }}",
        folder = site.path("").display(),
    );
    site.configure("worker_processes 1;", &text)
}
