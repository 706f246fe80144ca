//! The scripts of the Cloud Onload NGINX cookbook (SF-122073-CD), run as they are printed: what differs are the interface's name,
//! paths, times and numbers of clients. Each runs in a namespace of processes of its own, in which it may kill all there are.

use crate::namespace::{get, has, text_of};
use crate::run::BINARY;
use crate::server::{Site, wait_for};
use crate::topology::{STACK, Topology, between, ip, is_steered};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const START: &str = include_str!("cookbook/start_nginx");
const PROFILE: &str = include_str!("cookbook/webserver.opf");
const CONFIGURATION: &str = include_str!("cookbook/nginx-webserver.conf");
const NAMESPACES: &str = include_str!("cookbook/prepare_namespaces");
const CLIENTS: &str = include_str!("cookbook/run_wrk_namespace");

/// Enters the folder, with a /run of its own for named namespaces and process ids. Nothing is killed outside.
const PREPARE: &str = "[ $$ = 1 ] || exit 99
mount -t tmpfs none /run && mkdir /run/netns && cd \"$0\" || exit 98
";

/// The cookbook's folder on a machine, with links as docs/run.md says, in front of PATH.
struct Desk(Site);

impl Desk {
    fn new() -> Self {
        let site = Site::new();
        for folder in ["bin", "lib", "results"] {
            fs::create_dir(site.path(folder)).unwrap();
        }
        for name in ["onload", "onload_stackdump"] {
            symlink(BINARY, site.path("bin").join(name)).unwrap();
        }
        // The test changes nothing of the machine.
        symlink("/bin/true", site.path("bin/sysctl")).unwrap();
        let library = Path::new(BINARY).with_file_name("libmillstream.so");
        assert!(library.exists(), "\"cargo build -p mill-preload\" makes it");
        symlink(library, site.path("lib/libonload.so")).unwrap();
        symlink("/usr/bin/wrk", site.path("wrk")).unwrap();
        let configuration = CONFIGURATION.replace("SITE", site.path("").to_str().unwrap());
        for (name, text) in [
            ("start_nginx", START),
            ("webserver.opf", PROFILE),
            ("nginx-webserver_1.conf", &configuration),
            ("prepare_namespaces", NAMESPACES),
            ("run_wrk_namespace", CLIENTS),
            ("0kb.bin", ""),
        ] {
            fs::write(site.path(name), text).unwrap();
        }
        Self(site)
    }

    /// A machine that runs these words of a shell, and then the next ones.
    fn machine(&self, stack: &str) -> Machine {
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = self.0.path("");
        let shell = format!(
            "{PREPARE} while read -r line; do eval \"$line\"; echo $? > status; mv status done; done"
        );
        let child = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["bash", "-c", &shell])
            .arg(&folder)
            .env("PATH", format!("{}:{path}", folder.join("bin").display()))
            .env("LD_LIBRARY_PATH", folder.join("lib"))
            .env("MILLSTREAM_STACK", stack)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Machine(child.unwrap())
    }

    /// Runs a command there, and returns what it prints with its errors, and its exit status.
    fn say(&self, machine: &mut Machine, words: &str) -> (String, String) {
        use std::io::Write;
        let input = machine.0.stdin.as_mut().unwrap();
        writeln!(input, "{{ {words}; }} > said 2>&1").unwrap();
        let done = self.0.path("done");
        wait_for(|| done.exists());
        let status = fs::read_to_string(&done).unwrap();
        fs::remove_file(&done).unwrap();
        let said = fs::read_to_string(self.0.path("said")).unwrap();
        (said, status.trim().to_owned())
    }

    fn lacks(programs: &[&str]) -> bool {
        let missing = programs.iter().find(|program| !has(program));
        if let Some(missing) = missing {
            println!("not tested: there is no {missing}");
        }
        missing.is_some()
    }
}

/// The first process of a namespace of processes, all of which end with it.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const SERVER: &str = "192.168.105.35";

fn serves(topology: &Topology) -> bool {
    let url = format!("http://{SERVER}/index.html");
    topology.at_client(|| get(&url)).as_deref() == Some("hello\n")
}

/// How many connections the kernel of the thread's namespace has accepted.
fn accepted_by_kernel() -> String {
    text_of("nstat", &["-asz", "TcpPassiveOpens"])
}

/// In the server's namespace, with the cookbook's addresses.
fn at_cookbook(test: impl FnOnce(&Topology) + Send) {
    between(1500, |topology| {
        ip(&format!("address add {SERVER}/24 dev mill0"));
        topology.at_client(|| ip("address add 192.168.105.99/24 dev mill1"));
        test(topology);
    });
}

#[test]
fn the_start_script_starts_nginx_again_and_again_and_shows_the_size_of_its_cluster() {
    if Desk::lacks(&["nginx", "perl", "killall", "pidof", "unshare"]) {
        return;
    }
    at_cookbook(|topology| {
        let desk = Desk::new();
        let mut machine = desk.machine(STACK);
        for _ in 0..2 {
            // The second time the first instance is killed, and the profile waits for its stack to vanish.
            let (said, status) = desk.say(&mut machine, "bash start_nginx kernel 1");
            assert_eq!(status, "0", "{said}");
            assert!(said.contains("configuring for 1 workers"), "{said}");
            let (_, sizes) = said.rsplit_once("Stackdump clusters size\n").unwrap();
            assert_eq!(sizes, "cluster webs: size=1 interface=mill0\n", "{said}");
            assert!(said.contains("webs-c0"), "{said}");
            assert!(serves(topology));
        }
        let reload = "onload -p webserver.opf nginx -c $PWD/nginx-webserver_1.conf -s reload";
        let (said, status) = desk.say(&mut machine, reload);
        assert_eq!(status, "0", "a signal waits for no stack: {said}");
        assert!(serves(topology));
        drop(machine);
        wait_for(|| !is_steered());
    });
}

#[test]
fn a_cold_start_beside_a_running_instance_gives_up_and_says_which_stacks_there_are() {
    if Desk::lacks(&["nginx", "perl", "unshare"]) {
        return;
    }
    at_cookbook(|topology| {
        let desk = Desk::new();
        let mut machine = desk.machine(STACK);
        let start = "onload -p webserver.opf nginx -c $PWD/nginx-webserver_1.conf";
        let (said, status) = desk.say(&mut machine, start);
        assert_eq!(status, "0", "{said}");
        wait_for(|| serves(topology));
        // The profile's ten seconds pass at once.
        symlink("/bin/true", desk.0.path("bin/sleep")).unwrap();
        let (said, status) = desk.say(&mut machine, start);
        assert_ne!(status, "0", "{said}");
        assert!(
            said.contains("there are still stacks of the name webs-c##"),
            "{said}"
        );
        assert!(
            said.contains("webs-c0") && said.contains("exit status: 16"),
            "{said}"
        );
        // Another name is another cluster: the user's variable goes before the profile's.
        let other = format!("EF_CLUSTER_NAME=others {start} -t");
        let (said, status) = desk.say(&mut machine, &other);
        assert_eq!(status, "0", "{said}");
        assert!(serves(topology));
    });
}

#[test]
fn the_loop_over_cpus_runs_wrk_in_namespaces_on_the_stack() {
    if Desk::lacks(&["nginx", "perl", "wrk", "taskset", "ifconfig", "unshare"]) {
        return;
    }
    at_cookbook(|topology| {
        let served = Desk::new();
        let mut server = served.machine(STACK);
        let (said, _) = served.say(&mut server, "bash start_nginx kernel 1");
        wait_for(|| serves(topology));
        let before = accepted_by_kernel();
        topology.at_client(|| {
            let desk = Desk::new();
            let mut machine = desk.machine("af_xdp:mvl");
            let (prepared, status) = desk.say(&mut machine, "bash prepare_namespaces");
            assert_eq!(status, "0", "{prepared}");
            for (test, variables) in [("tps", true), ("rps0k", false)] {
                // What the script leaves in the background ends before the next one begins.
                let run = format!("source ./run_wrk_namespace {test}; wait");
                let (said, _) = desk.say(&mut machine, &run);
                assert_eq!(
                    said.contains("without an effect here: EF_"),
                    variables,
                    "{said}"
                );
                for client in 0..2 {
                    let results = desk.0.path(&format!("results/wrk_{test}_mill1_{client}"));
                    let results = fs::read_to_string(results).unwrap();
                    assert!(results.contains("Requests/sec"), "{results}{said}");
                    assert!(!results.contains("Socket errors"), "{results}");
                }
            }
            for client in 0..2 {
                let opened = format!("ip netns exec net{client} nstat -asz TcpActiveOpens");
                let (opened, _) = desk.say(&mut machine, &opened);
                let words: Vec<&str> = opened.split_whitespace().collect();
                assert!(
                    words.windows(2).any(|pair| pair == ["TcpActiveOpens", "0"]),
                    "{opened}"
                );
            }
        });
        assert_eq!(accepted_by_kernel(), before, "{said}");
    });
}
