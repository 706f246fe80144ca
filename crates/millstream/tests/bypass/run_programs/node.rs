//! Node.js, at both sides.

use super::{Peer, check_echo, check_site, have};
use crate::namespace::{get, text_of};
use crate::run::{Accelerated, on_stack};
use crate::server::{Site, wait_for};
use crate::topology::{FAR_ADDRESS, HOSTS, between, is_steered, kernel_connections};
use mill_sys::signal::Signal;
use std::collections::BTreeSet;
use std::fs;

/// Serves files of a folder, and answers with what it gets.
const SERVER: &str = "
const fs = require('fs'), http = require('http');
const server = http.createServer({keepAliveTimeout: 60000}, (request, response) => {
    if (request.method == 'POST') {
        response.writeHead(200, {'Content-Length': request.headers['content-length']});
        request.pipe(response);
        return;
    }
    const path = process.argv[1] + request.url;
    response.writeHead(200, {'Content-Length': fs.statSync(path).size});
    fs.createReadStream(path).pipe(response);
});
server.listen(8080, '0.0.0.0');
process.on('SIGTERM', () => { server.close(); server.closeAllConnections(); });
";

/// Forty requests over four kept connections: every second one has three megabytes of content, which come back, and the others
/// fetch twelve. Says how many were right, and over how many connections.
const CLIENT: &str = "
const http = require('http'), [host, path] = process.argv.slice(1);
const agent = new http.Agent({keepAlive: true, maxSockets: 4});
const large = require('fs').readFileSync(path), part = large.subarray(0, 3000000);
let right = 0, left = 40;
const ports = new Set();
function ask(method, url, sent, expected) {
    const request = http.request({host, port: 8080, path: url, method, agent}, (response) => {
        ports.add(response.socket.localPort);
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => {
            right += Buffer.concat(chunks).equals(expected);
            if (--left == 0) { console.log(right, ports.size); agent.destroy(); }
        });
    });
    request.end(sent);
}
for (let i = 0; i < 20; i++) {
    ask('GET', '/large.bin', undefined, large);
    ask('POST', '/', part, part);
}
";

#[test]
fn node_serves_and_asks_over_kept_connections() {
    if !have(&["node", "ab", "h2load", "curl"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let folder = site.path("");
        let server = ["node", "-e", SERVER, folder.to_str().unwrap()];
        let node = Accelerated::start(&server);
        check_site(topology, &site, 8080);
        check_echo(topology, &site, &format!("http://{}:8080/", HOSTS[0]));
        assert!(node.end(Signal::Terminate).success());

        let _peer = Peer::start(topology, &server);
        let url = "http://127.0.0.1:8080/index.html";
        topology.at_client(|| wait_for(|| get(url).is_some()));
        let large = site.path("large.bin");
        let said = on_stack(&["node", "-e", CLIENT, FAR_ADDRESS, large.to_str().unwrap()]);
        assert_eq!(said, "40 4\n");
        let of_kernel = text_of("ss", &["-Htan", "dport = :8080"]);
        assert_eq!(of_kernel, "");
        wait_for(|| !is_steered());
    });
}

/// Its first process accepts, and passes each connection to one of two others (`SCM_RIGHTS`), which answers with what it gets.
const CLUSTER: &str = "
const cluster = require('cluster'), http = require('http');
if (cluster.isPrimary) {
    const workers = [cluster.fork(), cluster.fork()];
    process.on('SIGTERM', () => { for (const worker of workers) worker.kill(); });
} else {
    http.createServer((request, response) => {
        const headers = {'Content-Length': request.headers['content-length'] ?? 0, Worker: process.pid};
        response.writeHead(200, headers);
        request.pipe(response);
    }).listen(8080, '0.0.0.0');
}
";

#[test]
fn connections_of_a_cluster_of_node_go_to_its_workers() {
    if !have(&["node", "curl"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let script = site.path("cluster.js");
        fs::write(&script, CLUSTER).unwrap();
        let node = Accelerated::start(&["node", script.to_str().unwrap()]);
        let url = format!("http://{}:8080/", HOSTS[0]);
        topology.at_client(|| wait_for(|| get(&url).is_some()));
        check_echo(topology, &site, &url);
        let worker = || {
            let words = ["-sS", "-o", "/dev/null", "-D", "-", &url];
            let head = topology.at_client(|| text_of("curl", &words));
            let found = head.lines().find_map(|line| line.strip_prefix("Worker: "));
            found.unwrap().to_owned()
        };
        let workers: BTreeSet<String> = (0..6).map(|_| worker()).collect();
        assert_eq!(workers.len(), 2);
        assert_eq!(kernel_connections(8080), "");
        node.end(Signal::Terminate);
    });
}
