//! Systems and clients on a stack of our own: both matrices of a recipe, over AF_XDP and over memif, and the leftovers
//! of a lab that is killed meanwhile.

use crate::bench::Bench;
use std::path::PathBuf;

/// Every combination that needs only this binary, three seconds each: over memif the first packets wait for the other
/// side.
const RECIPE: &str = r#"
parent = "smallest"
title = "Both sides on a stack of our own"
skip = [
    { system = "memif", client = ["kernel", "af_xdp"] },
    { system = ["nginx", "xdp"], client = "memif" },
]

[for]
client = [
    { name = "kernel", client_stack = "" },
    { name = "af_xdp", client_stack = "af_xdp:${client_interface}" },
    { name = "memif", client_stack = "memif:${run}/m.sock,role=slave,address=10.214.0.2/24" },
]

[repeat]
blocks = 1
foreign_cpu = 1
steal = 1

[system.xdp]
title = "own stack"
kind = "millstream"
config = "@conf/first-look-millstream.conf"
stack = "af_xdp:${interface}"
factors = { server = "millstream", stack = "own" }

[system.memif]
parent = "xdp"
title = "memif"
stack = "memif:${run}/m.sock,role=master,address=10.214.0.1/24"
host = "10.214.0.1"
factors = { server = "millstream", stack = "memif" }

[load]
tool = "millstream wrk"
stack = "${client_stack}"
args = "-t1 -c10 -d3s ${url}"
seconds = 3
"#;

/// Without AF_XDP in the kernel the lab reports that in its cells, and there is nothing to test.
fn bench() -> Option<(Bench, PathBuf)> {
    let protocols = std::fs::read_to_string("/proc/net/protocols").unwrap();
    if !protocols.lines().any(|line| line.starts_with("XDP ")) {
        crate::bench::say("left out: this test needs a kernel with AF_XDP");
        return None;
    }
    let bench = Bench::new()?;
    let recipe = bench.path("own.toml");
    std::fs::write(&recipe, RECIPE).unwrap();
    Some((bench, recipe))
}

/// Lines of the export as (system, client, metric or empty, value), by its heading.
fn figures(csv: &str) -> Vec<(String, String, String, String)> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|word| *word == name).unwrap();
    let columns = ["system", "client", "metric", "value"].map(column);
    let of = |line: Vec<&str>| columns.map(|column| line[column].to_owned());
    lines.map(of).map(Into::into).collect()
}

#[test]
fn every_way_is_measured_and_leaves_nothing_behind() {
    let Some((bench, recipe)) = bench() else {
        return;
    };
    let output = bench.output(&["run", recipe.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let csv = bench.output(&["export", "latest", "--csv"]);
    let csv = String::from_utf8(csv.stdout).unwrap();
    let figures = figures(&csv);
    let value = |system: &str, client: &str, metric: &str| -> f64 {
        let found = figures
            .iter()
            .find(|(s, c, m, _)| (s.as_str(), c.as_str(), m.as_str()) == (system, client, metric));
        let (.., value) = found.unwrap_or_else(|| panic!("{system} {client} {metric}: {said}"));
        value.parse().unwrap()
    };
    for (system, client) in [
        ("nginx", "kernel"),
        ("nginx", "af_xdp"),
        ("xdp", "kernel"),
        ("xdp", "af_xdp"),
        ("memif", "memif"),
    ] {
        let requests = value(system, client, "requests");
        assert!(requests > 100.0, "{system} {client}: {requests}");
        assert!(value(system, client, "cpu_us_per_request.both") > 0.0);
        // The kernel's counts are those of the steady part, which is short on a machine that delays the monitor.
        let steady = value(system, client, "steady_seconds");
        let few = value(system, client, "requests_per_s") * steady / 10.0;
        // The kernel counts the segments of its own clients; the server's stack's counts replace the kernel's.
        let of_client = value(system, client, "tcp.client.segments_in");
        let what = format!("{system} {client}: {of_client} segments, more than {few}?");
        assert_eq!(of_client > few, client == "kernel", "{what}");
        let of_server = value(system, client, "tcp.server.segments_in");
        assert!(of_server > few, "{system} {client}: {of_server}, {few}");
        if system != "nginx" {
            assert!(value(system, client, "own_stack.server.frames_received") > 100.0);
        }
    }
    // Five points: those that need a peer of the same kind were left out.
    assert!(said.contains("5/5 "), "{said}");
    assert_eq!(bench.journals(), 0);
    assert_eq!(bench.processes(), Vec::<String>::new());
}

#[test]
fn a_lab_that_is_killed_leaves_no_stack_after_a_restore() {
    let Some((bench, recipe)) = bench() else {
        return;
    };
    let lab = bench.under_way_of(&[
        "run",
        recipe.to_str().unwrap(),
        "--set",
        "repeat.blocks=20",
        "--set",
        "system=xdp",
        "--set",
        "client=af_xdp",
    ]);
    let process = lab.process();
    lab.kill();
    assert!(!Bench::namespaces_of(process).is_empty());
    let restored = bench.output(&["restore"]);
    let said = String::from_utf8_lossy(&restored.stdout);
    assert!(restored.status.success(), "{said}");
    assert!(Bench::namespaces_of(process).is_empty(), "{said}");
    assert_eq!(bench.processes(), Vec::<String>::new());
    assert_eq!(bench.journals(), 0, "{said}");
}
