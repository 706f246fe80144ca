//! Socket calls under `millstream run` give what the kernel gives: small scenes, and random sequences.

use crate::namespace::{has, output_of};
use crate::topology::{BRIDGED, FAR_ADDRESS, JOIN_BRIDGE, STACK, Topology, between};
use std::io::Read;
use std::process::{Child, Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_millstream");
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Small scenes of socket calls, a line each; and their far end.
const CALLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bypass/calls/main.py");
pub(crate) const FAR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bypass/calls/far.py");

/// Options that the stack does not have.
const REFUSED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bypass/calls/refused.py");

/// Random sequences of calls, a line each; and their other far end.
const SEQUENCES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/bypass/calls/sequences.py"
);
const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/bypass/calls/agent.py");

#[test]
fn small_scenes_of_calls_give_what_the_kernel_gives() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        let scenes = [PYTHON, CALLS];
        let of_kernel = lines(&scenes);
        assert!(of_kernel.len() >= 1000, "{of_kernel:?}");
        let words = [&["run", "--stack", STACK, "--"], &scenes[..]].concat();
        let kernel_again = |more: &[&str]| lines(&[&scenes[..], more].concat());
        let of_kernel = check_same(of_kernel, kernel_again, |more| {
            run_lines(&[&words[..], more].concat())
        });
        // The device is there once the program runs, which joins it to the bridge.
        topology.bridge();
        let of_kernel: Vec<String> = of_kernel
            .into_iter()
            .filter(|line| !ONLY_BESIDE_THE_KERNEL.contains(&name(line)))
            .collect();
        let left_out = ONLY_BESIDE_THE_KERNEL.map(|name| format!("-{name}"));
        let known = of_kernel.clone();
        let as_before = |more: &[&str]| {
            let asked = known.iter().filter(|line| more.contains(&name(line)));
            asked.cloned().collect()
        };
        check_same(of_kernel, as_before, |more| {
            let words: Vec<String> = match more {
                [] => left_out.to_vec(),
                more => more.iter().map(|name| format!("'{name}'")).collect(),
            };
            let joined = format!("{JOIN_BRIDGE}; exec {PYTHON} {CALLS} {}", words.join(" "));
            run_lines(&["run", "--stack", BRIDGED, "--", "sh", "-c", &joined])
        });
    });
}

/// Scenes in which the kernel has the stack's addresses, too.
const ONLY_BESIDE_THE_KERNEL: [&str; 3] = [
    "connect_to_the_own_address-4",
    "connect_to_the_own_address-6",
    "epoll_beside-udp",
];

/// The scenes have to say on a stack what they say on the kernel; `on_stack` has those of these names said, or all, and
/// `kernel_again` those of these names. Returns what the kernel has said in the end.
fn check_same(
    mut of_kernel: Vec<String>,
    kernel_again: impl Fn(&[&str]) -> Vec<String>,
    on_stack: impl Fn(&[&str]) -> Vec<String>,
) -> Vec<String> {
    let of_stack = on_stack(&[]);
    assert_eq!(of_kernel.len(), of_stack.len(), "{of_stack:?}");
    let suspects: Vec<String> = of_kernel
        .extract_if(.., |line| !of_stack.contains(line))
        .collect();
    // On a loaded machine pauses of a scene are outrun at either side: those again, one after the other. A stack that is
    // wrong never says what the kernel has said.
    let mut names: Vec<&str> = suspects.iter().map(|line| name(line)).collect();
    let mut heard = [suspects.clone(), of_stack];
    for _ in 0..ROUNDS_MAX {
        if names.is_empty() {
            break;
        }
        heard[0].extend(kernel_again(&names));
        heard[1].extend(on_stack(&names));
        names.retain(|&name| !agreed(&heard, name, &mut of_kernel));
    }
    for lines in &mut heard {
        lines.retain(|line| names.contains(&name(line)));
    }
    assert!(names.is_empty(), "kernel, stack: {heard:#?}");
    of_kernel
}

/// How often scenes are repeated in which the stack has not said yet what the kernel has.
const ROUNDS_MAX: usize = 5;

/// Whether kernel and stack have said a line of this name both, which then goes to `of_kernel`.
fn agreed(heard: &[Vec<String>; 2], scene: &str, of_kernel: &mut Vec<String>) -> bool {
    let [kernel, stack] = heard;
    let mut of_scene = kernel.iter().filter(|line| name(line) == scene);
    let same = of_scene.find(|line| stack.contains(line));
    of_kernel.extend(same.cloned());
    same.is_some()
}

/// The name of a scene.
fn name(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// What `millstream` prints.
fn run_lines(words: &[&str]) -> Vec<String> {
    lines(&[&[BINARY], words].concat())
}

/// How many sequences there are: 300, or `MILLSTREAM_SEQUENCES=20000`, and their first seed behind a comma.
fn sequences() -> String {
    let chosen = std::env::var("MILLSTREAM_SEQUENCES").unwrap_or_default();
    let (count, first) = chosen.split_once(',').unwrap_or((&chosen, "1"));
    let count: u64 = count.parse().unwrap_or(300);
    let first: u64 = first.parse().unwrap();
    format!("{first}-{}", first + count - 1)
}

#[test]
fn options_that_the_stack_does_not_have_are_said_once_each() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = started(topology, FAR);
        let words = ["run", "--stack", STACK, "--", PYTHON, REFUSED];
        let ends = [FAR_ADDRESS, "10.50.0.1"];
        let output = output_of(BINARY, &[&words[..], &ends].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        let no_option = "92\n92\n";
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            no_option,
            "{errors}"
        );
        let said = errors.lines().filter(|line| line.contains("the option"));
        let said: Vec<&str> = said.collect();
        let sentence = "millstream: connections of the stack don't have the option";
        let expected = [
            format!("{sentence} IP_TTL: it has no effect on them"),
            format!("{sentence} TCP_WINDOW_CLAMP: setsockopt() fails with ENOPROTOOPT"),
            format!("{sentence} SO_PRIORITY: it has no effect on them"),
        ];
        assert_eq!(said, expected);
    });
}

#[test]
fn random_sequences_of_calls_give_what_the_kernel_gives() {
    if !has(PYTHON) {
        println!("not tested: there is no python3");
        return;
    }
    between(1500, |topology| {
        let _far = [started(topology, FAR), started(topology, AGENT)];
        let seeds = sequences();
        println!("seeds {seeds}");
        let mut suspects = differing(&[SEQUENCES, SHORT_MS, &seeds], 1);
        if suspects.is_empty() {
            return;
        }
        // On a loaded machine something may be on its way longer than usual.
        for wait_ms in LONGER_MS {
            let words = [&[SEQUENCES, wait_ms], &first_words(&suspects)[..]].concat();
            suspects = differing(&words, 1);
            if suspects.is_empty() {
                return;
            }
        }
        panic!("kernel, stack: {suspects:#?}");
    });
}

/// The names of scenes, and the seeds of sequences.
fn first_words(lines: &[[String; 2]]) -> Vec<&str> {
    let words = lines
        .iter()
        .filter_map(|[kernel, _]| kernel.split(' ').next());
    words.collect()
}

/// Milliseconds after each call in which all arrives that is on its way: usually, and on a machine that is loaded more
/// and more.
const SHORT_MS: &str = "1";
const LONGER_MS: [&str; 3] = ["50", "150", "400"];

/// Has a script say what differs between kernel and stack, of at least so many lines.
fn differing(words: &[&str], count_min: usize) -> Vec<[String; 2]> {
    let plain = [&[PYTHON], words].concat();
    let of_kernel = lines(&plain);
    let of_stack = lines(&[&[BINARY, "run", "--stack", STACK, "--"], &plain[..]].concat());
    assert!(of_kernel.len() >= count_min, "{of_kernel:?}");
    assert_eq!(of_kernel.len(), of_stack.len());
    let pairs = of_kernel.into_iter().zip(of_stack);
    pairs
        .filter(|(kernel, stack)| kernel != stack)
        .map(<[String; 2]>::from)
        .collect()
}

/// The lines that a program prints within half an hour, but empty ones.
fn lines(words: &[&str]) -> Vec<String> {
    let mut command = Command::new("timeout");
    let output = command
        .arg("1800")
        .args(words)
        .stdin(Stdio::null())
        .output();
    let output = output.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.lines().filter(|line| !line.is_empty());
    said.map(String::from).collect()
}

/// A script at the clients' side, once it is ready.
pub(crate) fn started(topology: &Topology, script: &str) -> Ended {
    let child = topology.at_client(|| {
        let mut command = Command::new(PYTHON);
        command
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command.spawn().unwrap()
    });
    let mut script = Ended(child);
    let output = script.0.stdout.as_mut().unwrap();
    output.read_exact(&mut [0; 6]).unwrap();
    script
}

/// A process that is ended with the test.
pub(crate) struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
