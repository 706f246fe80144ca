//! psql, with a server on kernel sockets.

use super::{Peer, have};
use crate::namespace::{output_of, text_of};
use crate::run::on_stack;
use crate::server::{Site, wait_for};
use crate::topology::{FAR_ADDRESS, Topology, between, is_steered};
use mill_sys::signal::Signal;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// The folder of PostgreSQL's programs, of its latest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders
        .filter(|folder| folder.join("initdb").exists())
        .max()
}

/// A server at the clients' side, which does not run as root, once it answers.
fn postgres(topology: &Topology, programs: &std::path::Path, site: &Site) -> Peer {
    let data = site.path("data");
    let data = data.to_str().unwrap();
    let as_own = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
    let program = |name| programs.join(name).to_str().unwrap().to_owned();
    let initdb = program("initdb");
    let made = [&initdb, "-D", data, "-A", "trust", "-U", "postgres", "-N"];
    text_of("setpriv", &[&as_own[..], &made].concat());
    let access = fs::File::options()
        .append(true)
        .open(format!("{data}/pg_hba.conf"));
    writeln!(access.unwrap(), "host all all 10.50.0.0/24 trust").unwrap();
    let server = program("postgres");
    let settings = ["-c", "listen_addresses=*", "-c", "unix_socket_directories="];
    let words = [
        &["setpriv"],
        &as_own[..],
        &[&server, "-D", data, "-F"],
        &settings,
    ]
    .concat();
    let peer = Peer::ended_by(Signal::Quit, topology, &words);
    let ask = || output_of("psql", &["-h127.0.0.1", "-Upostgres", "-c", "select 1"]);
    topology.at_client(|| wait_for(|| ask().status.success()));
    peer
}

#[test]
fn psql_reads_and_writes_tables_over_the_stack() {
    let Some(programs) = programs().filter(|_| have(&["psql"])) else {
        println!("not tested: there is no postgres");
        return;
    };
    between(1500, |topology| {
        let site = Site::new();
        let _postgres = postgres(topology, &programs, &site);
        let psql = ["psql", "-h", FAR_ADDRESS, "-Upostgres", "-XAtc"];
        let ask = |query: &str| on_stack(&[&psql[..], &[query]].concat());
        assert_eq!(ask("select inet_client_addr()"), "10.50.0.1\n");
        let large = ask("select string_agg(md5(i::text), '') from generate_series(1, 100000) i");
        assert_eq!(large.len(), 3_200_001);
        let sum = format!("select md5('{}')", large.trim());
        assert!(sum.len() > 100_000);
        let lines: String = (0..200_000)
            .map(|number| format!("line {number}\n"))
            .collect();
        fs::write(site.path("lines"), &lines).unwrap();
        assert_eq!(ask("create table lines (line text)"), "CREATE TABLE\n");
        let path = |name| site.path(name).to_str().unwrap().to_owned();
        for _ in 0..2 {
            let (from, to) = (path("lines"), path("back"));
            assert_eq!(ask("truncate lines"), "TRUNCATE TABLE\n");
            assert_eq!(ask(&format!("\\copy lines from '{from}'")), "COPY 200000\n");
            assert_eq!(ask(&format!("\\copy lines to '{to}'")), "COPY 200000\n");
            assert!(fs::read_to_string(to).unwrap() == lines);
        }
        assert_eq!(text_of("ss", &["-Htan", "dport = :5432"]), "");
        wait_for(|| !is_steered());
    });
}
