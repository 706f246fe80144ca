//! A store in a folder of its own and records to fill it with, for tests that use stores.

use super::{RunFolder, TrialFolder, publish};
use crate::limit::{Limit, Side};
use crate::record::{CommandLine, Environment, Figures, Point, RunRecord, TrialRecord};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes with its owner.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mill-lab-store-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Read-only folders of complete runs, where the tests are not root.
        let _ = publish::set_writable(&self.0, true);
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) const RECIPE: &str = r#"
title = "nginx with jemalloc"
question = "What does an allocator give?"
[for]
system = ["glibc", "jemalloc"]
[system.glibc]
title = "nginx"
kind = "nginx"
"#;

pub(crate) fn run(id: &str, started_ms: u64) -> RunRecord {
    RunRecord {
        id: String::from(id),
        recipe: String::from("nginx-jemalloc"),
        title: String::from("nginx with jemalloc"),
        size: String::from("smoke"),
        overrides: vec![String::from("repeat.blocks=2")],
        command: vec![String::from("millstream"), String::from("lab")],
        seed: u64::MAX,
        started_ms,
        millstream: String::from("0.1.0"),
        commit: Some(String::from("220b848")),
        trials: 4,
    }
}

pub(crate) fn environment() -> Environment {
    Environment {
        host: String::from("ada"),
        kernel: String::from("6.1.0"),
        cores: 2,
        ..Environment::default()
    }
}

pub(crate) fn trial(number: usize, system: &str, rate: f64) -> TrialRecord {
    TrialRecord {
        number,
        point: Point::from([(String::from("system"), String::from(system))]),
        started_ms: 1000,
        seconds: 2.5,
        commands: vec![CommandLine {
            role: String::from("client 0"),
            line: String::from("wrk http://10.0.0.2/"),
        }],
        figures: Figures::from([(String::from("requests_per_s"), rate)]),
        percentiles: vec![(50.0, 0.001)],
        limit: Some(Limit {
            side: Side::Server,
            evidence: String::from("CPUs of the server 100 % busy, of the client 40 %"),
        }),
        artefacts: vec![String::from("round-trip.txt")],
        ..TrialRecord::default()
    }
}

/// A whole trial: its folder, what the client printed, its record.
pub(crate) fn keep(folder: &RunFolder, record: &TrialRecord) -> TrialFolder {
    let place = folder.trial(record.number).unwrap();
    place.write("client-0.out", "Running\n").unwrap();
    assert_eq!(folder.keep(record).unwrap(), None);
    place
}
