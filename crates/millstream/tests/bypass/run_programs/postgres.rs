//! PostgreSQL: psql with a server on kernel sockets, and a server with psql on these.

use super::{Peer, have};
use crate::namespace::{output_of, text_of};
use crate::run::{Accelerated, on_stack};
use crate::server::{Site, wait_for};
use crate::topology::{FAR_ADDRESS, HOSTS, Topology, between, is_steered, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of PostgreSQL's programs, of its latest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folders = versions.map(|version| version.path().join("bin"));
    folders
        .filter(|folder| folder.join("initdb").exists())
        .max()
}

const AS_OWN: [&str; 4] = [
    "setpriv",
    "--reuid=postgres",
    "--regid=postgres",
    "--clear-groups",
];

/// Makes a folder of data, and gives the command line of a server on it, which does not run as root.
fn server(programs: &Path, site: &Site) -> Vec<String> {
    let data = site.path("data");
    let data = data.to_str().unwrap();
    let program = |name| programs.join(name).to_str().unwrap().to_owned();
    let initdb = program("initdb");
    let made = [&initdb, "-D", data, "-A", "trust", "-U", "postgres", "-N"];
    text_of(AS_OWN[0], &[&AS_OWN[1..], &made].concat());
    let access = fs::File::options()
        .append(true)
        .open(format!("{data}/pg_hba.conf"));
    writeln!(access.unwrap(), "host all all 10.50.0.0/24 trust").unwrap();
    let postgres = program("postgres");
    let settings = ["-c", "listen_addresses=*", "-c", "unix_socket_directories="];
    let words = [&AS_OWN[..], &[&postgres, "-D", data, "-F"], &settings].concat();
    words.into_iter().map(String::from).collect()
}

/// A server at the clients' side, once it answers.
fn postgres(topology: &Topology, programs: &Path, site: &Site) -> Peer {
    let words = server(programs, site);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let peer = Peer::ended_by(Signal::Quit, topology, &words);
    let ask = || output_of("psql", &["-h127.0.0.1", "-Upostgres", "-c", "select 1"]);
    topology.at_client(|| wait_for(|| ask().status.success()));
    peer
}

/// A large table goes there and back: `ask` asks psql.
fn check_tables(site: &Site, ask: impl Fn(&str) -> String) {
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
        check_tables(&site, ask);
        assert_eq!(text_of("ss", &["-Htan", "dport = :5432"]), "");
        wait_for(|| !is_steered());
    });
}

/// Each of its connections is a child's, to which the parent passes what it says.
#[test]
fn a_server_of_postgres_on_the_stack_serves_by_its_children() {
    let Some(programs) = programs().filter(|_| have(&["psql"])) else {
        println!("not tested: there is no postgres");
        return;
    };
    between(1500, |topology| {
        let site = Site::new();
        let words = server(&programs, &site);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let postgres = Accelerated::start(&words);
        let host = HOSTS[0];
        let psql = ["-h", host, "-Upostgres", "-XAtc"];
        let said = |query: &str| {
            let output = topology.at_client(|| output_of("psql", &[&psql[..], &[query]].concat()));
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        wait_for(|| said("select 1") == "1\n" && kernel_connections(5432).is_empty());
        assert_eq!(
            said("select inet_client_addr(), inet_server_addr(), inet_server_port()"),
            format!("{FAR_ADDRESS}|{host}|5432\n")
        );
        check_tables(&site, said);
        assert_eq!(kernel_connections(5432), "");
        postgres.end(Signal::Quit);
    });
}
