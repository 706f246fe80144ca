//! Findings to draw in tests, made up in the likeness of two recipes; no figure here was measured.

mod pictures;

pub(super) use pictures::{bars, crowded, scaling};

use crate::findings::{
    Block, Cell, Compared, Counts, Findings, Grid, Noise, Statement, Tone, Verdict, Warning,
};
use crate::record::{CommandLine, Environment, RunRecord, TunedKey};

/// One core, two allocators: few points, much detail.
pub(super) fn jemalloc() -> Findings {
    Findings {
        run: run("nginx-jemalloc", "nginx with another allocator, one core"),
        question: String::from("Does jemalloc make nginx faster on one saturated core?"),
        origin: Some(String::from("Seed 004, rows N1 and N2")),
        environment: environment(),
        summary: summary(),
        noise: Some(Noise {
            floor: 0.019,
            metric: String::from("requests_per_s"),
            pairs: 12,
            text: String::from(
                "glibc beside itself differs by 1.9 % (12 pairs): smaller changes are not told apart.",
            ),
        }),
        comparisons: comparisons(),
        tables: vec![allocators()],
        charts: pictures::jemalloc(),
        blocks: vec![Block {
            title: String::from("ab, glibc, the median trial"),
            text: String::from(AB),
        }],
        warnings: vec![Warning {
            lint: String::from("two-factors"),
            text: String::from(
                "The document changes the concurrency (100 to 300) together with the allocator.",
            ),
            more: vec![String::from("Table 2 does so as well.")],
            advice: String::from("Compare the columns with the same -c; this run has all four."),
        }],
        absences: vec![
            String::from(
                "dTLB loads and misses: this machine has no hardware counters. In their place: page faults and CPU µs per request.",
            ),
            String::from(
                "The I219-LM with one queue: a veth pair with one queue and a rate of 1 Gbit/s stands in.",
            ),
        ],
        notes: vec![String::from("ab's times include connecting; wrk's do not.")],
        topology: String::from(TOPOLOGY),
        tuned: tuned(),
        commands: vec![(
            String::from("glibc"),
            vec![
                command(
                    "server",
                    "ip netns exec mill-s taskset -c 1 /usr/sbin/nginx -p /run/millstream/lab/t1/ -c nginx.conf",
                ),
                command(
                    "client 0",
                    "ip netns exec mill-c taskset -c 0 ab -n 800000 -c 100 http://10.77.0.1:80/logo.svg",
                ),
            ],
        )],
        counts: Counts {
            measured: 47,
            disturbed: 1,
            ..Counts::default()
        },
        interrupted: false,
    }
}

fn summary() -> Vec<Statement> {
    vec![
        statement(
            Tone::Gain,
            "jemalloc serves 7.5 % more requests/s than glibc: from 33,586 to 36,121 (+7.5 % [5.2, 9.8], 12 pairs).",
        ),
        statement(
            Tone::Same,
            "CPU µs per request of the server: no difference beyond 1.9 %.",
        ),
        statement(
            Tone::Plain,
            "malloc calls per request, in the allocator that is mapped: 4.00 with glibc, 4.01 with jemalloc.",
        ),
    ]
}

fn comparisons() -> Vec<Compared> {
    vec![
        gain(
            "jemalloc : glibc at -c 100",
            1.0754,
            Some((1.052, 1.098)),
            Verdict::Better,
        ),
        Compared {
            caution: Some(String::from("both sides busy at 3 of 24 trials")),
            ..gain(
                "jemalloc : glibc at -c 300",
                1.004,
                Some((0.985, 1.021)),
                Verdict::NoDifference,
            )
        },
        gain(
            "mimalloc : glibc at -c 100",
            0.957,
            Some((0.921, 0.981)),
            Verdict::Worse,
        ),
        gain(
            "mimalloc : glibc at -c 300",
            1.031,
            None,
            Verdict::Inconclusive,
        ),
    ]
}

/// Many workers and sizes, columns that are not here, and a run that was interrupted.
pub(super) fn cookbook() -> Findings {
    let mut findings = jemalloc();
    findings.run = run(
        "onload-cookbook",
        "nginx on the kernel and on Onload, by workers",
    );
    findings.question =
        String::from("How do new connections a second scale with workers on each stack?");
    findings.origin = Some(String::from("Seed 001, rows O1 and O2"));
    findings.interrupted = true;
    findings.counts = Counts {
        measured: 31,
        disturbed: 2,
        disturbed_used: 0,
        absent: 24,
        failed: 1,
        missing: 14,
    };
    findings.tables = vec![stacks()];
    findings.charts = vec![scaling()];
    findings
}

fn run(recipe: &str, title: &str) -> RunRecord {
    RunRecord {
        id: format!("2026-11-21T0736-{recipe}-k3f9"),
        recipe: recipe.to_owned(),
        title: title.to_owned(),
        size: String::from("smoke"),
        overrides: vec![String::from("repeat.blocks=12")],
        command: [
            "millstream",
            "lab",
            "run",
            recipe,
            "--set",
            "repeat.blocks=12",
        ]
        .map(String::from)
        .to_vec(),
        seed: 1,
        started_ms: 1_795_246_560_000,
        millstream: String::from("0.4.0"),
        commit: Some(String::from("220b848")),
        trials: 48,
    }
}

fn environment() -> Environment {
    Environment {
        host: String::from("bench-1"),
        kernel: String::from("6.12.41"),
        distribution: String::from("Debian GNU/Linux 12 (bookworm)"),
        cpu: String::from("Intel Xeon E-2186G @ 3.80 GHz"),
        cores: 2,
        memory_bytes: 67_545_000_000,
        nodes: 1,
        hypervisor: String::from("KVM"),
        governor: None,
        clocksource: Some(String::from("tsc")),
        transparent_hugepage: Some(String::from("madvise")),
        congestion_control: Some(String::from("cubic")),
        mitigations: vec![String::from("spectre_v2: Mitigation: Enhanced IBRS")],
        open_files_max: 1_048_576,
        versions: [("nginx", "1.22.1"), ("ab", "2.3"), ("perf", "6.1.140")]
            .map(|(tool, version)| (tool.to_owned(), version.to_owned()))
            .into(),
        interfaces: vec![String::from("eth0: virtio_net, 10 Gbit/s, 2 queues")],
        running: vec![String::from("cron"), String::from("sshd")],
        warnings: vec![String::from(
            "Client and server share a machine with 2 CPUs: each has one.",
        )],
        absent: [("hardware counters", "the hypervisor does not pass them on")]
            .map(|(what, why)| (what.to_owned(), why.to_owned()))
            .into(),
    }
}

fn statement(tone: Tone, text: &str) -> Statement {
    Statement {
        tone,
        text: text.to_owned(),
    }
}

fn gain(title: &str, ratio: f64, interval: Option<(f64, f64)>, verdict: Verdict) -> Compared {
    let (systems, at) = title.split_once(" at ").unwrap_or((title, ""));
    let (to, from) = systems.split_once(" : ").unwrap_or((systems, ""));
    Compared {
        title: title.to_owned(),
        factor: String::from("allocator"),
        metric: String::from("requests_per_s"),
        at: at.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        from_figure: 33_585.56,
        to_figure: if ratio == 1.0754 {
            36_120.88
        } else {
            33_585.56 * ratio
        },
        ratio,
        interval,
        covers: interval.map(|_| 0.961),
        pairs: if interval.is_some() { 12 } else { 3 },
        p_value: interval.map(|_| 0.00049),
        verdict,
        words: match verdict {
            Verdict::Better => String::from("faster by 7.5 % [5.2, 9.8], 12 pairs, p = 0.00049"),
            Verdict::Worse => String::from("slower by 4.3 % [1.9, 7.9], 12 pairs, p = 0.00049"),
            Verdict::NoDifference => String::from("no difference > 2 %"),
            Verdict::Inconclusive => String::from("inconclusive: needs about 9 more blocks"),
        },
        caution: None,
    }
}

fn cell(text: &str) -> Cell {
    Cell {
        text: text.to_owned(),
        ..Cell::default()
    }
}

fn number(text: &str, spread: &str, published: Option<&str>, mark: Option<&str>) -> Cell {
    Cell {
        text: text.to_owned(),
        spread: Some(spread.to_owned()),
        published: published.map(|ratio| format!("{ratio} of the document's")),
        mark: mark.map(str::to_owned),
        number: true,
    }
}

fn gap(mark: &str) -> Cell {
    Cell {
        mark: Some(mark.to_owned()),
        ..Cell::default()
    }
}

fn head(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn allocators() -> Grid {
    Grid {
        title: String::from("ab -n 800000, as the document prints it"),
        head: head(&["metric", "glibc", "jemalloc", "change"]),
        rows: vec![
            vec![
                cell("Requests/s"),
                number("33585.56", "± 0.8 %", Some("0.31"), None),
                number("36120.88", "± 1.1 %", Some("0.33"), None),
                cell("from 33585.56 to 36120.88 (+7.5 %)"),
            ],
            vec![
                cell("Time per request, mean"),
                number("2.977", "± 0.8 %", Some("1.00"), None),
                number("2.768", "± 1.1 %", None, None),
                cell("from 2.977 to 2.768 (-7.0 %)"),
            ],
            vec![
                cell("dTLB misses"),
                cell(""),
                gap("absent: no hardware counters"),
                cell(""),
            ],
        ],
        notes: vec![String::from(
            "Times in milliseconds, as ab prints them. Medians of 12 trials each.",
        )],
    }
}

fn stacks() -> Grid {
    let row = |workers: &str, kernel: Cell, own: Cell| {
        vec![
            cell(workers),
            kernel,
            gap("not on this machine"),
            gap("not on this machine"),
            own,
            cell(""),
            cell(""),
        ]
    };
    Grid {
        title: String::from("Table 2: new connections a second, 25G"),
        head: head(&[
            "Worker processes",
            "Kernel",
            "Onload balanced",
            "Onload performance",
            "Millstream, own stack",
            "Onload balanced gain",
            "Onload performance gain",
        ]),
        rows: vec![
            row(
                "1",
                number("21890.7", "± 1.2 %", Some("0.61"), None),
                gap("not built yet"),
            ),
            row(
                "2",
                number("23226.1", "± 2.0 %", Some("0.32"), Some("client-bound")),
                gap("not built yet"),
            ),
            row("4", gap("needs 4 cores"), gap("needs 4 cores")),
            row("8", gap("needs 8 cores"), gap("needs 8 cores")),
        ],
        notes: vec![String::from(
            "Connections a second, sums over 32 wrk processes.",
        )],
    }
}

fn tuned() -> Vec<TunedKey> {
    let key = |key: &str, before: Option<&str>, wanted: &str, problem: Option<&str>| TunedKey {
        key: key.to_owned(),
        before: before.map(str::to_owned),
        wanted: wanted.to_owned(),
        problem: problem.map(str::to_owned),
    };
    vec![
        key("net.ipv4.tcp_tw_reuse (server)", Some("2"), "1", None),
        key(
            "net.ipv4.tcp_tw_recycle (server)",
            None,
            "1",
            Some("absent on this kernel (removed in 4.12)"),
        ),
        key(
            "/sys/kernel/mm/transparent_hugepage/enabled",
            Some("always"),
            "madvise",
            None,
        ),
    ]
}

fn command(role: &str, line: &str) -> CommandLine {
    CommandLine {
        role: role.to_owned(),
        line: line.to_owned(),
    }
}

const TOPOLOGY: &str = "\
┌ mill-s ───────────┐    veth, 1 queue     ┌ mill-c ───────────┐
│ nginx :80, CPU 1  ├──────────────────────┤ ab, CPU 0         │
│ 10.77.0.1         │    1 Gbit/s (tbf)    │ 10.77.0.2         │
└───────────────────┘                      └───────────────────┘
";

const AB: &str = "\
Server Software:        nginx/1.22.1
Document Path:          /logo.svg
Document Length:        2649 bytes
Concurrency Level:      100
Time taken for tests:   23.820 seconds
Complete requests:      800000
Requests per second:    33585.56 [#/sec] (mean)

Percentage of the requests served within a certain time (ms)
  50%      3
 100%     25 (longest request)
";
