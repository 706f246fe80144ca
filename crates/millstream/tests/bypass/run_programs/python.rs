//! Python: http.server as it is, asyncio at both sides, gunicorn.

use super::{Peer, check_echo, check_load, check_site, have, wait_until_served};
use crate::client::Client;
use crate::namespace::{output_of, text_of};
use crate::run::{Accelerated, address, on_stack};
use crate::run_calls::PYTHON;
use crate::server::{Site, wait_for};
use crate::topology::{FAR_ADDRESS, HOSTS, between, is_steered, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;

#[test]
fn pythons_http_server_serves_a_folder() {
    if !have(&[PYTHON, "ab", "h2load"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let folder = site.path("");
        let folder = ["--directory", folder.to_str().unwrap()];
        let words = [PYTHON, "-m", "http.server", "80", "--protocol", "HTTP/1.1"];
        let server = Accelerated::start(&[&words[..], &folder].concat());
        check_site(topology, &site, 80);
        // Python forgets an exception that a signal raises while it runs a callback, as of a reference that ends.
        assert!(server.end_in_the_end(Signal::Interrupt).success());
    });
}

/// Echoes each connection until SIGTERM.
const ASYNCIO_SERVER: &str = "
import asyncio, signal
async def talk(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()
async def main():
    server = await asyncio.start_server(talk, '0.0.0.0', 7000)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await ended.wait()
    server.close()
asyncio.run(main())
";

/// Twenty connections at a time, each of which sends a megabyte and reads it meanwhile. Says how many heard what they said.
const ASYNCIO_CLIENT: &str = "
import asyncio, random, sys
async def talk(number):
    data = random.Random(number).randbytes(1000000)
    reader, writer = await asyncio.open_connection(sys.argv[1], 7000)
    async def send():
        for start in range(0, len(data), 30000):
            writer.write(data[start:start + 30000])
            await writer.drain()
        writer.write_eof()
    heard, _ = await asyncio.gather(reader.read(-1), send())
    writer.close()
    await writer.wait_closed()
    return heard == data
async def main():
    print(sum(await asyncio.gather(*map(talk, range(20)))))
asyncio.run(main())
";

#[test]
fn asyncio_echoes_many_connections_at_a_time_as_server_and_as_client() {
    if !have(&[PYTHON]) {
        return;
    }
    between(1500, |topology| {
        let server = Accelerated::start(&[PYTHON, "-c", ASYNCIO_SERVER]);
        let open = wait_until_served(topology, 7000);
        let client = [PYTHON, "-c", ASYNCIO_CLIENT];
        let heard = topology.at_client(|| text_of(PYTHON, &[&client[1..], &[HOSTS[0]]].concat()));
        assert_eq!(heard, "20\n");
        assert_eq!(kernel_connections(7000), "");
        drop(open);
        assert!(server.end(Signal::Terminate).success());

        let _peer = Peer::start(topology, &[PYTHON, "-c", ASYNCIO_SERVER]);
        wait_for(|| Client::connect(format!("{FAR_ADDRESS}:7000").parse().unwrap()).is_ok());
        let of_kernel = || text_of("ss", &["-Htan", "dport = :7000"]);
        let before = of_kernel();
        let heard = on_stack(&[&client[..], &[FAR_ADDRESS]].concat());
        assert_eq!(heard, "20\n");
        assert!(of_kernel().lines().count() <= before.lines().count());
        wait_for(|| !is_steered());
    });
}

/// Serves files of the current folder, and answers with what it gets.
const WSGI: &str = "
import os
def app(environ, start_response):
    path = environ['PATH_INFO'].strip('/')
    if environ['REQUEST_METHOD'] == 'POST': content = environ['wsgi.input'].read()
    elif path == 'worker': content = str(os.getpid()).encode()
    else: content = open(path, 'rb').read()
    start_response('200 OK', [('Content-Length', str(len(content)))])
    return [content]
";

#[test]
fn gunicorn_serves_with_threads_and_with_new_workers_after_a_reload() {
    if !have(&["/usr/bin/gunicorn", "ab", "h2load", "curl"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        fs::write(site.path("served.py"), WSGI).unwrap();
        let folder = site.path("");
        let words = ["-b", "0.0.0.0:80", "-w1", "--threads=4", "--keep-alive=60"];
        let place = ["--chdir", folder.to_str().unwrap(), "served:app"];
        let program = [&["/usr/bin/gunicorn"], &words[..], &place[..]].concat();
        let gunicorn = Accelerated::start(&program);
        check_site(topology, &site, 80);
        check_echo(topology, &site, &format!("http://{}/", HOSTS[0]));
        let url = format!("http://{}/worker", HOSTS[0]);
        let worker = || topology.at_client(|| output_of("curl", &["-sSf", &url]).stdout);
        let before = worker();
        gunicorn.signal(Signal::Hangup);
        wait_for(|| {
            let now = worker();
            !now.is_empty() && now != before
        });
        check_load(topology, 80, "/index.html");
        let open = topology.at_client(|| Client::connect(address(80)).unwrap());
        assert_eq!(kernel_connections(80), "");
        drop(open);
        assert!(gunicorn.end(Signal::Terminate).success());
    });
}
