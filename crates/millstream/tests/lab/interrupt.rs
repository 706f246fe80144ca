//! Ctrl-C in the middle of a run: the system is restored, measured trials are kept, and the run can be resumed.

use crate::bench::Bench;
use mill_sys::signal::Signal;

#[test]
fn an_interrupted_run_restores_reports_and_can_be_resumed() {
    let Some(bench) = Bench::new() else { return };
    let lab = bench.under_way();
    let process = lab.process();
    lab.send(Signal::Interrupt);
    let (status, said) = lab.end();
    assert_eq!(status, Some(130), "{said}");
    assert!(said.contains("lab resume"), "{said}");
    assert!(Bench::namespaces_of(process).is_empty());
    assert!(bench.processes().is_empty());
    assert_eq!(bench.journals(), 0);

    let kept = std::fs::read_dir(bench.path("store/runs"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let first = kept.path().join("trials/0001/trial.json");
    assert!(first.exists(), "the first trial is kept");
}
