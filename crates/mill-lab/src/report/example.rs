//! Findings to draw in tests, made up in the likeness of two recipes; no figure here was measured.

use crate::findings::{
    Bar, Block, Cell, Compared, Counts, Dot, Drawing, Findings, Grid, Noise, Picture, Scale,
    Series, Statement, Tone, Verdict, Warning,
};
use crate::metric::Unit;
use crate::record::{CommandLine, Environment, RunRecord, TunedKey};

/// One core, two allocators: few points, much detail.
pub(super) fn jemalloc() -> Findings {
    Findings {
        run: run("nginx-jemalloc", "nginx with another allocator, one core"),
        question: String::from("Does jemalloc make nginx faster on one saturated core?"),
        origin: Some(String::from("Seed 004, rows N1 and N2")),
        environment: environment(),
        summary: vec![
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
        ],
        noise: Some(Noise {
            floor: 0.019,
            metric: String::from("requests_per_s"),
            pairs: 12,
            text: String::from(
                "glibc beside itself differs by 1.9 % (12 pairs): smaller changes are not told apart.",
            ),
        }),
        comparisons: vec![
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
        ],
        tables: vec![allocators()],
        charts: vec![percentiles(), cpu(), over_time(), flame()],
        blocks: vec![Block {
            title: String::from("ab, glibc, the median trial"),
            text: String::from(AB),
        }],
        warnings: vec![Warning {
            lint: String::from("two-factors"),
            text: String::from(
                "The document changes the concurrency (100 to 300) together with the allocator.",
            ),
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
            void: 1,
            ..Counts::default()
        },
        interrupted: false,
    }
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
        void: 2,
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
        from_median: 33_585.56,
        to_median: if ratio == 1.0754 {
            36_120.88
        } else {
            33_585.56 * ratio
        },
        ratio,
        interval,
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

fn scale(title: &str, unit: Unit, logarithmic: bool, complement: bool) -> Scale {
    Scale {
        title: title.to_owned(),
        unit,
        logarithmic,
        complement,
    }
}

fn line(name: &str, points: &[(f64, f64)], width: f64) -> Series {
    let dot = |&(x, y): &(f64, f64)| Dot {
        x,
        y,
        low: (width > 0.0).then_some(y * (1.0 - width)),
        high: (width > 0.0).then_some(y * (1.0 + width)),
    };
    Series {
        name: name.to_owned(),
        points: points.iter().map(dot).collect(),
    }
}

/// Published figures of the cookbook's Table 2, so that the picture has a shape that a reader knows.
pub(super) fn scaling() -> Picture {
    let workers = [1.0, 2.0, 4.0, 8.0, 16.0, 28.0];
    let of = |rates: [f64; 6]| -> Vec<(f64, f64)> { workers.into_iter().zip(rates).collect() };
    let ideal: Vec<(f64, f64)> = workers.iter().map(|n| (*n, n * 126_007.0)).collect();
    let law: Vec<(f64, f64)> = (1..=28)
        .map(f64::from)
        .map(|n| {
            (
                n,
                37_100.0 * n / (1.0 + 0.044 * (n - 1.0) + 0.0019 * n * (n - 1.0)),
            )
        })
        .collect();
    Picture {
        title: String::from("New connections a second by worker processes"),
        drawing: Drawing::Lines {
            x: scale("Worker processes", Unit::Count, false, false),
            y: scale("New connections/s", Unit::PerSecond, false, false),
            series: vec![
                line(
                    "Kernel",
                    &of([
                        35_890.7, 73_226.1, 128_555.0, 209_513.0, 278_366.0, 288_632.0,
                    ]),
                    0.04,
                ),
                line(
                    "Onload balanced",
                    &of([
                        126_007.0,
                        198_366.0,
                        404_713.0,
                        755_081.0,
                        1_454_320.0,
                        2_334_780.0,
                    ]),
                    0.03,
                ),
                line(
                    "Onload performance",
                    &of([
                        125_273.0,
                        201_056.0,
                        407_412.0,
                        779_808.0,
                        1_434_150.0,
                        2_302_380.0,
                    ]),
                    0.03,
                ),
            ],
            curves: vec![
                line("ideal", &ideal, 0.0),
                line("Kernel: fit, σ = 0.044, κ = 0.0019", &law, 0.0),
            ],
            shaded: Vec::new(),
        },
        caption: String::from(
            "Medians with 95 % intervals. The fit is the universal scalability law; its peak is at 22.5 workers.",
        ),
    }
}

fn percentiles() -> Picture {
    let ranks = [
        0.0, 50.0, 66.0, 75.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 100.0,
    ];
    let of = |ms: [f64; 11]| -> Vec<(f64, f64)> {
        ranks.into_iter().zip(ms.map(|ms| ms / 1000.0)).collect()
    };
    Picture {
        title: String::from("Latency by percentile"),
        drawing: Drawing::Lines {
            x: scale("Percentile", Unit::Percent, false, true),
            y: scale("Latency", Unit::Seconds, true, false),
            series: vec![
                line(
                    "glibc",
                    &of([1.0, 3.0, 3.1, 3.2, 3.4, 4.0, 4.2, 5.0, 5.3, 12.0, 25.0]),
                    0.0,
                ),
                line(
                    "jemalloc",
                    &of([1.0, 7.0, 8.0, 8.1, 8.2, 8.4, 9.0, 11.0, 12.0, 225.0, 1015.0]),
                    0.0,
                ),
            ],
            curves: Vec::new(),
            shaded: Vec::new(),
        },
        caption: String::from(
            "The median trial of each. Service times of a closed loop, not response times.",
        ),
    }
}

fn cpu() -> Picture {
    let bar = |name: &str, parts: [f64; 4]| (name.to_owned(), parts.to_vec());
    Picture {
        title: String::from("CPU of the server's core"),
        drawing: Drawing::Stacks {
            parts: head(&["usr", "sys", "soft", "idle"]),
            bars: vec![
                bar("glibc, server", [24.28, 45.06, 30.66, 0.0]),
                bar("jemalloc, server", [19.54, 35.12, 32.18, 13.15]),
                bar("glibc, client", [18.0, 41.0, 11.0, 30.0]),
            ],
        },
        caption: String::from("As mpstat counts, in the steady part."),
    }
}

fn over_time() -> Picture {
    let down: Vec<(f64, f64)> = (0..120)
        .map(f64::from)
        .map(|step| {
            let second = step * 0.25;
            let ramp = (second / 2.0).min(1.0).min((30.0 - second) / 2.0);
            (second, 4200.0 * ramp + 220.0 * (second * 2.1).sin() * ramp)
        })
        .collect();
    let up: Vec<(f64, f64)> = down.iter().map(|(x, y)| (*x, y * 0.19)).collect();
    Picture {
        title: String::from("The interface over time"),
        drawing: Drawing::Lines {
            x: scale("Time", Unit::Seconds, false, false),
            y: scale("Mb/s", Unit::Count, false, false),
            series: vec![line("down", &down, 0.0), line("up", &up, 0.0)],
            curves: Vec::new(),
            shaded: vec![(0.0, 2.0), (28.0, 30.0)],
        },
        caption: String::from("Shaded parts are ramps and not counted."),
    }
}

fn flame() -> Picture {
    let folded = [
        (
            "nginx;main;ngx_worker_process_cycle;ngx_process_events_and_timers;ngx_epoll_process_events;ngx_http_process_request;ngx_http_header_filter;_int_malloc",
            341,
        ),
        (
            "nginx;main;ngx_worker_process_cycle;ngx_process_events_and_timers;ngx_epoll_process_events;ngx_http_process_request;ngx_vslprintf",
            463,
        ),
        (
            "nginx;main;ngx_worker_process_cycle;ngx_process_events_and_timers;ngx_epoll_process_events;writev;entry_SYSCALL_64_[k];do_syscall_64_[k];tcp_sendmsg_[k];tcp_write_xmit_[k]",
            2140,
        ),
        (
            "nginx;main;ngx_worker_process_cycle;ngx_process_events_and_timers;ngx_epoll_process_events;accept4;entry_SYSCALL_64_[k];do_syscall_64_[k];inet_accept_[k]",
            900,
        ),
        (
            "nginx;main;ngx_worker_process_cycle;ngx_process_events_and_timers;epoll_wait;entry_SYSCALL_64_[k];do_syscall_64_[k];ep_poll_[k]",
            610,
        ),
        (
            "nginx;main;ngx_worker_process_cycle;ngx_process_events_and_timers;ngx_event_expire_timers",
            120,
        ),
        ("swapper;cpuidle_idle_call_[k]", 300),
    ];
    Picture {
        title: String::from("Where the server's time goes, glibc"),
        drawing: Drawing::Flame {
            folded: folded
                .map(|(stack, count)| (stack.to_owned(), count))
                .to_vec(),
        },
        caption: String::from("perf record, 99 samples a second, in a pass of its own."),
    }
}

/// Bars of every tone, one without an interval.
pub(super) fn bars() -> Picture {
    let bar = |name: &str, value: f64, interval: Option<(f64, f64)>, tone| Bar {
        name: name.to_owned(),
        value,
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        tone,
    };
    Picture {
        title: String::from("Gains"),
        drawing: Drawing::Bars {
            scale: scale("Gain", Unit::Percent, false, false),
            zero: 0.0,
            bars: vec![
                bar(
                    "balanced, 1 worker",
                    251.1,
                    Some((240.0, 262.0)),
                    Tone::Gain,
                ),
                bar(
                    "balanced, 28 workers, 100 kB",
                    -0.4,
                    Some((-1.4, 0.6)),
                    Tone::Same,
                ),
                bar(
                    "performance, 28 workers",
                    -12.0,
                    Some((-20.0, -4.0)),
                    Tone::Loss,
                ),
                bar("performance, 2 workers", 20.0, None, Tone::Unsure),
            ],
        },
        caption: String::new(),
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
