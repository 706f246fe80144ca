//! Relays between processes of one program: what they take, and what becomes of them when the process ends that has the queue.

use crate::client::Client;
use crate::namespace::has;
use crate::run::{address, workers_of_nginx};
use crate::server::{Site, wait_for};
use crate::topology::between_queues;
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const WORKERS: u32 = 4;

/// The memory of the relays that a process has, by its inode: KiB of it that the process has used.
fn relays(process: Pid) -> BTreeMap<u64, u64> {
    let mappings = fs::read_to_string(format!("/proc/{}/smaps", process.number()));
    let mappings = mappings.unwrap_or_default();
    let mut relays = BTreeMap::new();
    let mut of = None;
    for line in mappings.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            // proc(5): addresses, permissions, offset, device, inode, path.
            [_, _, _, _, inode, path, ..] => {
                let is_relay = path.starts_with("/memfd:millstream-relay");
                of = is_relay.then(|| inode.parse().unwrap());
            }
            ["Rss:", kib, "kB"] => {
                relays.extend(of.map(|of: u64| (of, kib.parse::<u64>().unwrap())));
            }
            _ => {}
        }
    }
    relays
}

/// The process that has the queue, which has a relay to each other one, and the others.
fn owner_of(workers: &[Pid]) -> Option<(Pid, Vec<Pid>)> {
    let has_all = |worker: &&Pid| relays(**worker).len() == workers.len() - 1;
    let owner = *workers.iter().find(has_all)?;
    let others = workers.iter().copied().filter(|worker| *worker != owner);
    let others: Vec<Pid> = others.collect();
    let mut ways = others.iter().map(|other| relays(*other).len());
    ways.all(|ways| ways == 1).then_some((owner, others))
}

#[test]
fn relays_take_memory_as_frames_come_and_go_on_when_the_owner_of_the_queue_ends() {
    if !has("nginx") {
        println!("not tested: there is no nginx");
        return;
    }
    between_queues([1, 1], |topology| {
        let site = Site::new();
        let (nginx, kept) = workers_of_nginx(topology, &site, (WORKERS, "server { listen 80; }"));
        drop(kept);
        let mut found = None;
        wait_for(|| {
            let workers = nginx.children();
            found = owner_of(&workers).filter(|_| workers.len() == WORKERS as usize);
            found.is_some()
        });
        let (owner, others) = found.unwrap();
        let before = relays(owner);
        for kib in before.values() {
            assert!(*kib < 256, "{kib} KiB of a relay with little traffic");
        }
        owner.kill(Signal::Terminate.number()).unwrap();
        wait_for(|| !nginx.children().contains(&owner));
        // The master starts another one in its place.
        wait_for(|| owner_of(&nginx.children()).is_some());
        // One of the others had the queue next, and perhaps another one after that: their ways to the former owner are over.
        let ways = others.iter().flat_map(|other| relays(*other));
        let after: BTreeSet<u64> = ways.map(|(relay, _)| relay).collect();
        let goes_on = after.iter().any(|relay| before.contains_key(relay));
        assert!(goes_on, "{before:?}, then {after:?}");
        let answer = topology.at_client(|| Client::connect(address(80)).unwrap().get("/"));
        assert_eq!(answer.unwrap().status, 200);
        nginx.end(Signal::Quit);
    });
}
