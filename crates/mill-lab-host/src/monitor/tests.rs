//! Samples made by hand, and one sample of the machine the tests run on.

use super::network::Traffic;
use super::sample::Side;
use super::*;

/// A second of a load: 1000 packets of 1250 bytes each way at `at`, CPUs as in `stat`.
fn sample(second: u64, stat: &str) -> Sample {
    let stat = cpu::parse(stat).unwrap();
    let traffic = Traffic {
        rx_bytes: second * 1_250_000,
        rx_packets: second * 1000,
        tx_bytes: second * 12_500_000,
        tx_packets: second * 9000,
        ..Traffic::default()
    };
    let mut server = Side {
        cpus: stat.cpus.get(&1).copied(),
        traffic: Some(traffic),
        ..Side::default()
    };
    server.usage.cpu_seconds = cpu::float(second) * 0.6;
    server.usage.processes = 1;
    server.tcp.counters.insert("segments_out", second * 1000);
    server
        .tcp
        .counters
        .insert("retransmitted_segments", second * 10);
    let mut client = Side {
        cpus: stat.cpus.get(&0).copied(),
        fullest: 5000,
        ..Side::default()
    };
    client.tcp.in_use = 2000;
    client.tcp.time_wait = 3000;
    Sample {
        at: Duration::from_secs(100 + second),
        stat,
        server,
        client,
        ..Sample::default()
    }
}

/// A hundred ticks a second: the server's CPU has 50 user, 20 system, 30 softirq; the client's 10 user of another's.
fn stat(second: u64) -> String {
    format!(
        "cpu  {} 0 {} {} 0 0 {} 0 0 0\ncpu0 {} 0 0 {} 0 0 0 0 0 0\ncpu1 {} 0 {} 0 0 0 {} 0 0 0\n\
         intr {} 1 2\nctxt {}\nsoftirq 5 0 0 0 {} 0 0 0 0 0 0\n",
        second * 60,
        second * 20,
        second * 90,
        second * 30,
        second * 10,
        second * 90,
        second * 50,
        second * 20,
        second * 30,
        second * 7000,
        second * 300,
        second * 4000,
    )
}

fn observed(seconds: u64) -> Observed {
    let facts = Facts {
        server_mbit: Some(1000.0),
        cpus: vec![0, 1],
        ports: Some(10_000.0),
        ..Facts::default()
    };
    Observed {
        samples: (0..=seconds)
            .map(|second| sample(second, &stat(second)))
            .collect(),
        facts,
    }
}

#[test]
fn figures_are_those_of_mpstat_and_sar() {
    let (figures, absent) = observed(10).steady(Duration::from_secs(2));
    let check = |name: &str, expected: f64| {
        let found = figures.get(name).copied().unwrap_or(f64::NAN);
        assert!((found - expected).abs() < 1e-9, "{name}: {found}");
    };
    check("steady_seconds", 6.0);
    check("cpu.server.usr", 50.0);
    check("cpu.server.sys", 20.0);
    check("cpu.server.soft", 30.0);
    check("cpu.server.idle", 0.0);
    check("cpu.client.idle", 90.0);
    check("cpu.cpu1.soft", 30.0);
    check("interface.server.rx_packets_per_s", 1000.0);
    check("interface.server.tx_kib_per_s", 12_500_000.0 / 1024.0);
    check("interface.server.utilisation_percent", 10.0);
    check("interrupts_per_s", 7000.0);
    check("softirqs_per_s.net_rx", 4000.0);
    check("context_switches_per_s", 300.0);
    check("process_cpu.server", 60.0);
    check("cpu_seconds.server", 3.6);
    // Its process had 60 ticks, from which softirq cannot be told apart; the other 40 are 30 of softirq and 10 of
    // another process.
    check("cpu.server.own", 90.0);
    check("cpu.server.others", 10.0);
    check("ports_share", 0.5);
    assert_eq!(absent, []);
    // No process of the client's is known, so its CPU's work cannot be attributed.
    assert_eq!(figures.get("cpu.client.own"), None);
}

#[test]
fn every_name_of_a_figure_is_in_the_metric_table() {
    let (figures, _) = observed(4).steady(Duration::ZERO);
    for name in figures.keys() {
        assert!(mill_lab::metric::is_known(name), "{name}");
    }
}

#[test]
fn counts_of_tcp_are_of_the_ramps_too() {
    let (figures, _) = observed(10).steady(Duration::from_secs(2));
    assert_eq!(figures["tcp.server.retransmitted_segments"], 100.0);
    assert_eq!(figures["tcp.server.retransmitted_share"], 0.01);
}

#[test]
fn interrupts_that_a_process_was_charged_with_are_not_counted_twice() {
    let (figures, _) = observed(10).steady(Duration::ZERO);
    // The CPU did 10 s, the process is charged with 6: 3 of interrupts fit into the other 4.
    assert_eq!(figures["softirq_seconds.server"], 3.0);
    let mut charged = observed(10);
    for sample in &mut charged.samples {
        sample.server.usage.cpu_seconds *= 1.5;
    }
    let (figures, _) = charged.steady(Duration::ZERO);
    assert!((figures["softirq_seconds.server"] - 1.0).abs() < 1e-9);
}

#[test]
fn what_neither_tree_used_is_foreign() {
    let (figures, _) = observed(10).steady(Duration::ZERO);
    // Of 200 ticks a second processes had 80, the server 60.
    assert!((figures["foreign_cpu_share"] - 0.1).abs() < 1e-9);
}

#[test]
fn ports_of_a_shared_namespace_are_the_clients_part_of_the_sockets() {
    let mut observed = observed(2);
    observed.facts.shared_network = true;
    for (waits, expected) in [(0.0, 0.1), (0.5, 0.25), (1.0, 0.4)] {
        observed.facts.client_waits = waits;
        let (figures, _) = observed.steady(Duration::ZERO);
        assert_eq!(figures["ports_share"], expected);
    }
}

#[test]
fn a_load_beside_the_interface_ignores_the_interfaces_traffic() {
    let mut observed = observed(10);
    for (index, sample) in observed.samples.iter_mut().enumerate() {
        if let Some(traffic) = &mut sample.server.traffic {
            // One unrelated frame, in the middle.
            traffic.rx_bytes = u64::from(index >= 5) * 86;
            traffic.tx_bytes = 0;
        }
    }
    let steady = |observed: &Observed| observed.steady(Duration::ZERO).0["steady_seconds"];
    assert_eq!(steady(&observed), 1.0);
    observed.facts.beside_interface = true;
    assert_eq!(steady(&observed), 10.0);
}

#[test]
fn time_before_the_first_request_is_not_of_the_steady_part() {
    let mut observed = observed(10);
    for (index, sample) in observed.samples.iter_mut().enumerate() {
        if index <= 5 {
            sample.server.traffic = Some(Traffic::default());
        }
    }
    let (figures, _) = observed.steady(Duration::from_secs(1));
    // The jump of traffic lies between samples 5 and 6, and the ramp's second at the end.
    assert_eq!(figures["steady_seconds"], 4.0);
}

#[test]
fn a_load_shorter_than_its_ramps_is_measured_whole() {
    let (figures, absent) = observed(2).steady(Duration::from_secs(5));
    assert_eq!(figures["steady_seconds"], 2.0);
    assert_eq!(absent, []);
    let (figures, absent) = Observed::default().steady(Duration::ZERO);
    assert_eq!(figures.len(), 0);
    assert!(absent.iter().any(|(name, _)| name == "cpu"), "{absent:?}");
}

#[test]
fn a_line_an_interval_has_a_value_for_each_name() {
    let csv = observed(3).csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].starts_with("second,context_switches_per_s,"));
    assert!(lines[1].starts_with("1.000,300,"), "{}", lines[1]);
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
    assert_eq!(Observed::default().csv(), "");
}

#[test]
fn this_machine_can_be_watched() {
    let testbed = Testbed::loopback(vec![0], vec![0]);
    let monitor = Monitor::start(Watched {
        server: vec![std::process::id()],
        clients: vec![u32::MAX],
        testbed,
        interval: Duration::from_millis(20),
        link_mbit: None,
        beside_interface: false,
    });
    let observed = monitor.unwrap().stop();
    assert!(observed.samples.len() >= 2);
    let (figures, absent) = observed.steady(Duration::ZERO);
    assert!(figures.contains_key("interface.server.rx_packets_per_s"));
    assert!(figures.contains_key("memory_bytes.server"));
    assert!(!figures.contains_key("process_cpu.client"));
    let rate = "interface.server.utilisation_percent";
    assert!(absent.iter().any(|(name, _)| name == rate), "{absent:?}");
}
