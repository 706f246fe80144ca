//! TLS and HTTP/2 over a TAP device.

use crate::namespace::in_namespace;
use crate::secured;
use crate::server::{STACK, Server, Site};
use mill_sys::signal::Signal;

#[test]
fn tls_and_http2_are_served_over_the_stack_and_by_the_kernel_beside_it() {
    in_namespace(|| {
        let site = Site::new();
        let conf = secured::configure(&site);
        let server = Server::configured(&site, &conf, &["--stack", STACK]);
        secured::check(&site, &["10.77.0.2", "[fd00::2]"], "10.77.0.1");
        secured::check(&site, &["127.0.0.1"], "127.0.0.1");
        assert!(server.end(Signal::Quit).success());
    });
}
