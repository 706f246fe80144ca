//! Web servers of C: with threads (Apache's mpm_event) and with one (lighttpd).

use super::{check_echo, check_site, have, wait_until_served};
use crate::client::Client;
use crate::namespace::text_of;
use crate::run::{Accelerated, address};
use crate::server::{Site, wait_for};
use crate::topology::{HOSTS, Topology, between, kernel_connections};
use mill_sys::signal::Signal;
use std::fs;

/// A configuration of Apache: a process of 32 threads, room for those that end, files that clients may write.
fn apache_conf(site: &Site) -> String {
    let directory = site.path("");
    let directory = directory.display();
    let modules = ["mpm_event", "authz_core", "dir", "dav", "dav_fs"];
    let modules = modules
        .map(|name| format!("LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so\n"));
    let modules = modules.concat();
    let text = format!(
        "{modules}ServerRoot {directory}\nServerName test\nDefaultRuntimeDir {directory}\nPidFile {directory}/pid\n\
         ErrorLog {directory}/error.log\nUser www-data\nGroup www-data\nListen 80\n\
         StartServers 1\nServerLimit 8\nThreadsPerChild 32\nThreadLimit 32\nMaxRequestWorkers 32\n\
         KeepAlive On\nKeepAliveTimeout 60\nMaxKeepAliveRequests 0\n\
         DocumentRoot {directory}\nDirectoryIndex index.html\nDavLockDB {directory}/locks\n\
         <Directory {directory}>\nRequire all granted\nDav On\n</Directory>\n"
    );
    let path = site.path("apache.conf");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn apache(topology: &Topology, site: &Site) -> Accelerated {
    let conf = apache_conf(site);
    let apache = Accelerated::start(&["apache2", "-DFOREGROUND", "-f", &conf]);
    drop(wait_until_served(topology, 80));
    apache
}

#[test]
fn apache_serves_and_takes_files_with_the_threads_of_mpm_event() {
    if !have(&["apache2", "ab", "h2load", "curl"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let apache = apache(topology, &site);
        check_site(topology, &site, 80);
        let large = site.path("large.bin");
        let url = format!("http://{}/put.bin", HOSTS[0]);
        let from = large.to_str().unwrap();
        topology.at_client(|| text_of("curl", &["-sSfT", from, &url]));
        let put = fs::read(site.path("put.bin")).unwrap();
        assert!(put == fs::read(&large).unwrap());
        assert_eq!(kernel_connections(80), "");
        assert!(apache.end(Signal::Terminate).success());
    });
}

#[test]
fn graceful_restarts_of_apache_bring_new_processes_and_the_oldest_finishes_its_answer() {
    if !have(&["apache2"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let apache = apache(topology, &site);
        let mut kept = topology.at_client(|| Client::connect(address(80)).unwrap());
        kept.send(b"GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n")
            .unwrap();
        let (_, len) = kept.head().unwrap();
        let first = kept.content(100_000).unwrap();
        for _ in 0..3 {
            let before = apache.children();
            apache.signal(Signal::User1);
            // The next process may begin when the one before has ended: connections wait meanwhile.
            for _ in 0..10 {
                let mut next = topology.at_client(|| Client::connect(address(80)).unwrap());
                assert_eq!(next.get("/").unwrap().content, b"hello\n");
            }
            // A signal that comes while the restart before is under way is lost on it.
            let mut looks = 0;
            wait_for(|| {
                looks += 1;
                if looks % LOOKS_BETWEEN_SIGNALS == 0 {
                    apache.signal(Signal::User1);
                }
                apache.children().last() != before.last()
            });
            wait_until_served(topology, 80);
        }
        let rest = kept.content(len - first.len()).unwrap();
        let served = fs::read(site.path("large.bin")).unwrap();
        assert!(served == [first, rest].concat());
        let open = wait_until_served(topology, 80);
        assert_eq!(kernel_connections(80), "");
        drop((kept, open));
        assert!(apache.end(Signal::Terminate).success());
    });
}

#[test]
fn lighttpd_serves_files_and_programs_that_it_starts() {
    if !have(&["lighttpd", "ab", "h2load", "curl"]) {
        return;
    }
    between(1500, |topology| {
        let site = Site::new();
        let directory = site.path("");
        let directory = directory.display();
        let conf = format!(
            "server.document-root = \"{directory}\"\nserver.upload-dirs = ( \"{directory}\" )\nserver.port = 80\n\
             server.errorlog = \"{directory}/error.log\"\nserver.username = \"www-data\"\n\
             server.modules = ( \"mod_cgi\" )\ncgi.assign = ( \".cgi\" => \"/bin/sh\" )\n\
             server.max-keep-alive-requests = 10000\nserver.max-keep-alive-idle = 60\n"
        );
        let path = site.path("lighttpd.conf");
        fs::write(&path, conf).unwrap();
        let script = "printf 'Content-Length: %s\\r\\n\\r\\n' \"$CONTENT_LENGTH\"; exec cat\n";
        fs::write(site.path("echo.cgi"), script).unwrap();
        let lighttpd = Accelerated::start(&["lighttpd", "-D", "-f", path.to_str().unwrap()]);
        check_site(topology, &site, 80);
        check_echo(topology, &site, &format!("http://{}/echo.cgi", HOSTS[0]));
        assert!(lighttpd.end(Signal::Interrupt).success());
    });
}

/// How often it is looked, before a signal is sent again.
const LOOKS_BETWEEN_SIGNALS: u32 = 200;
