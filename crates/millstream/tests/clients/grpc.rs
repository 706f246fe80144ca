//! gRPC's own library (grpcio) on both sides of `grpc_pass`. Kernel sockets are tested in `process`.

use crate::namespace::output_of;
use crate::server::wait_for;
use crate::stage::{GRPC, Network, Stage, set};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Debian's interpreter, which has the library (`setup/ensure test`).
const PYTHON: &str = "/usr/bin/python3";
const PEER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/grpc/peer.py");

#[test]
fn calls_of_every_kind_pass_over_tap() {
    set(Network::Tap, call);
}

#[test]
fn calls_of_every_kind_pass_over_af_xdp() {
    set(Network::AfXdp, call);
}

/// A server behind, ended with this value.
struct Behind(Child);

impl Behind {
    fn start() -> Self {
        let port = GRPC.rsplit(':').next().unwrap();
        let server = Command::new(PYTHON)
            .args([PEER, "serve", port])
            .stderr(Stdio::null())
            .spawn();
        let behind = Self(server.unwrap());
        wait_for(|| TcpStream::connect(GRPC).is_ok());
        behind
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn call(stage: &Stage<'_>) {
    let library = Command::new(PYTHON).args(["-c", "import grpc"]).output();
    if !library.is_ok_and(|output| output.status.success()) {
        println!("not tested: there is no grpcio");
        return;
    }
    let _behind = Behind::start();
    let authority = stage.site.path("ca.pem").display().to_string();
    for (port, authority) in [(80, None), (443, Some(&authority[..]))] {
        let address = stage.address(port).to_string();
        let mut words = vec![PEER, "ask", &address];
        words.extend(authority);
        let output = stage.at_client(|| output_of(PYTHON, &words));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(said, "all is well\n", "port {port}");
    }
    stage.assert_carried();
}
