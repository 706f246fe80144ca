//! Blocks of wrk and ab as the documents print them.

use super::*;
use crate::output;
use crate::parts::assert_contains;
use crate::recipe::Tool;

fn fixture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/seeds/");
    std::fs::read_to_string(format!("{folder}{name}")).unwrap()
}

fn warnings(name: &str) -> Vec<Warning> {
    text(name, &fixture(name))
}

#[test]
fn every_printed_block_is_read() {
    for (name, blocks) in [("000-wrk.txt", 12), ("003-wrk.txt", 43), ("004-ab.txt", 2)] {
        let (samples, problems) = blocks::of(name, &fixture(name));
        assert_eq!(samples.len(), blocks, "{name}");
        assert!(problems.is_empty(), "{problems:?}");
        for sample in &samples {
            assert!(
                sample.figure("requests_per_s").is_some(),
                "{}",
                sample.place
            );
            assert!(
                sample.figure("latency_s.mean").is_some(),
                "{}",
                sample.place
            );
            assert!(sample.asked.is_some(), "{}", sample.place);
        }
    }
}

#[test]
fn columns_that_slipped_in_ab_of_seed_004_are_put_back() {
    let printed = output::parse(Tool::Ab, &fixture("004-ab.txt")).unwrap();
    let percents: Vec<(f64, f64)> = printed.percentiles;
    let expected = [
        (50.0, 0.003),
        (66.0, 0.003),
        (75.0, 0.003),
        (80.0, 0.003),
        (90.0, 0.004),
        (95.0, 0.004),
        (98.0, 0.005),
        (99.0, 0.005),
        (100.0, 0.025),
    ];
    assert_eq!(percents, expected);
    assert_eq!(printed.figures["processing_s.max"], 0.022);
}

#[test]
fn the_swapped_pair_of_seed_000_is_found() {
    let warnings = warnings("000-wrk.txt");
    let swapped = of_lint(&warnings, "swapped-labels");
    let [swapped] = swapped.as_slice() else {
        panic!("{swapped:#?}")
    };
    assert!(
        swapped.starts_with("The results of Nginx and Tempesta FW are swapped:"),
        "{swapped}"
    );
    for part in [
        "has 891 bytes an answer, where Nginx has 833",
        "has 833 bytes an answer, where Tempesta FW has 89",
        "(66954.88 requests/s are Nginx's)",
        "(60865.96 requests/s are Tempesta FW's)",
        "the command asks http://192.168.200.80:9090/, the output is of http://192.168.200.80/.",
    ] {
        assert!(swapped.contains(part), "{part}: {swapped}");
    }
    assert!(of_lint(&warnings, "varying-size").is_empty());
    assert!(of_lint(&warnings, "two-factors").is_empty());
}

#[test]
fn the_pair_is_found_by_size_alone() {
    // Without the addresses in the commands and the outputs.
    let text_only = fixture("000-wrk.txt").replace(":9090", "");
    let warnings = text("page", &text_only);
    let swapped = of_lint(&warnings, "swapped-labels");
    assert_eq!(swapped.len(), 1, "{swapped:#?}");
    assert!(!swapped[0].contains("the command asks"), "{}", swapped[0]);
}

#[test]
fn mended_labels_raise_no_alarm() {
    let printed = fixture("000-wrk.txt");
    let (before, rest) = printed.split_once("The results for Nginx are:").unwrap();
    let (first, rest) = rest.split_once("Tempesta FW:").unwrap();
    let (second, rest) = rest.split_once("1 CPU VM").unwrap();
    let mended = format!("{before}Nginx:{second}\nTempesta FW:{first}\n1 CPU VM{rest}")
        .replace(
            "-t 8 http://192.168.200.80/\nRunning 30s test @ http://192.168.200.80:9090/",
            "-t 8 http://192.168.200.80:9090/\nRunning 30s test @ http://192.168.200.80:9090/",
        )
        .replace(
            "-t 8 http://192.168.200.80:9090/\nRunning 30s test @ http://192.168.200.80/",
            "-t 8 http://192.168.200.80/\nRunning 30s test @ http://192.168.200.80/",
        );
    let (samples, _) = blocks::of("page", &mended);
    let best = samples
        .iter()
        .find(|sample| sample.figure("requests_per_s") == Some(66_954.88));
    assert_eq!(best.map(|sample| sample.label.as_str()), Some("Nginx"));
    let warnings = text("page", &mended);
    assert!(
        of_lint(&warnings, "swapped-labels").is_empty(),
        "{warnings:#?}"
    );
}

#[test]
fn the_interrupted_runs_of_seed_000_are_found() {
    let warnings = warnings("000-wrk.txt");
    let found = warnings.iter().find(|found| found.lint == "interrupted");
    let found = found.expect("two runs were interrupted");
    let (first, [second]) = (&found.text, found.more.as_slice()) else {
        panic!("{found:#?}")
    };
    assert!(
        first.ends_with("the run ended after 2.03 s of the 30 s asked for; the output is of 8192 connections, the command asks for 16384."),
        "{first}"
    );
    assert!(
        second.ends_with("the run ended after 16.71 s of the 30 s asked for."),
        "{second}"
    );
}

#[test]
fn failed_connects_and_cut_tails_of_seed_000_are_found() {
    let warnings = warnings("000-wrk.txt");
    let hidden = of_lint(&warnings, "hidden-errors");
    assert_eq!(hidden.len(), 1);
    assert!(
        hidden[0]
            .ends_with("7179 connects failed, so that at most 1013 of 8192 connections were used."),
        "{}",
        hidden[0]
    );
    let cut = of_lint(&warnings, "truncated-tail");
    assert_eq!(cut.len(), 1);
    assert!(cut[0].contains("in 10 of 12 results"), "{}", cut[0]);
    assert!(cut[0].contains("up to 4388 of them"), "{}", cut[0]);
    assert_eq!(of_lint(&warnings, "single-run").len(), 1);
}

#[test]
fn the_two_factors_and_the_blind_probe_of_seed_004_are_found() {
    let warnings = warnings("004-ab.txt");
    let factors = of_lint(&warnings, "two-factors");
    assert_eq!(factors.len(), 1, "{factors:#?}");
    assert_contains(
        factors[0],
        "differ in the allocator (jemalloc), and in -c 100 and 300",
    );
    let probe = of_lint(&warnings, "wrong-allocator");
    assert_eq!(probe.len(), 1, "{probe:#?}");
    assert_contains(
        probe[0],
        "1027994 calls of malloc became 840 with jemalloc while the probe beside it counted 289287",
    );
    assert_eq!(
        names(&warnings),
        BTreeSet::from(["two-factors", "wrong-allocator", "single-run"])
    );
}

#[test]
fn a_table_of_contents_that_names_the_allocator_hides_nothing() {
    let contents = "- 10. Introduce jemalloc\n- 12. Analyze for jemalloc\n";
    let filler = "worker_connections 4096;\n".repeat(100);
    let whole = format!("{contents}{filler}{}", fixture("004-ab.txt"));
    let warnings = text("page", &whole);
    assert_eq!(of_lint(&warnings, "two-factors").len(), 1, "{warnings:#?}");
    assert_eq!(of_lint(&warnings, "wrong-allocator").len(), 1);
}

#[test]
fn a_command_and_ab_s_first_lines_in_one_line_are_taken_apart() {
    let joined = fixture("004-ab.txt").replace(
        "-c 300 http://www.example.com/logo.svg\n",
        "-c 300 http://www.example.com/logo.svg This is ApacheBench Zeus Technology Ltd, http://www.zeustech.net/\n",
    );
    let warnings = text("page", &joined);
    assert!(
        of_lint(&warnings, "swapped-labels").is_empty(),
        "{warnings:#?}"
    );
    assert_eq!(of_lint(&warnings, "two-factors").len(), 1);
}

#[test]
fn a_probe_that_looks_at_the_right_malloc_raises_no_alarm() {
    let right = "1,000 probe_libc:malloc 250 probe:tcp_recvmsg\nIntroduce jemalloc\n\
                 990 probe_libjemalloc:malloc 260 probe:tcp_recvmsg\n";
    assert!(text("page", right).is_empty());
    let stopped = "1,000 probe_libc:malloc 250 probe:tcp_recvmsg\nIntroduce jemalloc\n\
                   9 probe_libc:malloc 2 probe:tcp_recvmsg\n";
    assert!(text("page", stopped).is_empty());
}

#[test]
fn seed_003_has_a_cut_tail_and_single_runs_and_nothing_else() {
    let warnings = warnings("003-wrk.txt");
    assert_eq!(
        names(&warnings),
        BTreeSet::from(["truncated-tail", "single-run"]),
        "{warnings:#?}"
    );
}

#[test]
fn an_answer_that_changes_its_size_is_found() {
    let changed = fixture("003-wrk.txt").replacen("598.53MB", "458.53MB", 1);
    let changed = changed.replacen("17.59GB", "13.47GB", 1);
    let warnings = text("page", &changed);
    let varying = of_lint(&warnings, "varying-size");
    assert_eq!(varying.len(), 1, "{warnings:#?}");
    assert_contains(varying[0], "but with 442 in page:");
}

#[test]
fn three_servers_at_one_ceiling_are_found() {
    let block = |label: &str, rate: &str| {
        format!(
            "{label}:\n\n# wrk -c 10 -t 1 -d 1s http://h/\nRunning 1s test @ http://h/\n  1 threads and 10 connections\n\
             \x20   Latency     1.00ms    1.00ms   2.00ms   90.00%\n    Req/Sec     1.00k     1.00     2.00k    90.00%\n\
             \x20 100 requests in 1.00s, 1.00MB read\nRequests/sec:  {rate}\nTransfer/sec:      1.00MB\n\n"
        )
    };
    let page = |rate: &str| {
        format!(
            "One host\n\n{}{}{}",
            block("alpha", "4050000.00"),
            block("beta", "4070000.00"),
            block("gamma", rate)
        )
    };
    let warnings = text("page", &page("4090000.00"));
    assert_eq!(of_lint(&warnings, "client-bound").len(), 1, "{warnings:#?}");
    let warnings = text("page", &page("3090000.00"));
    assert!(of_lint(&warnings, "client-bound").is_empty());
}

#[test]
fn texts_that_are_cut_off_anywhere_do_no_harm() {
    for name in ["000-wrk.txt", "004-ab.txt"] {
        let whole = fixture(name);
        for end in (0..whole.len()).step_by(37) {
            if let Some(cut) = whole.get(..end) {
                let warnings = text(name, cut);
                let unreadable = of_lint(&warnings, "unreadable-block");
                assert!(unreadable.len() <= 1, "{name} cut at {end}: {unreadable:?}");
                let swapped = of_lint(&warnings, "swapped-labels").len();
                assert!(swapped <= 2, "{name} cut at {end}: {warnings:#?}");
            }
        }
    }
}
