//! A lab that is killed: `lab restore` removes what it has made, and the run can be resumed.

use crate::bench::Bench;

#[test]
fn after_a_crash_restore_leaves_nothing_changed() {
    let Some(bench) = Bench::new() else { return };
    let lab = bench.under_way();
    let process = lab.process();
    assert!(
        !Bench::namespaces_of(process).is_empty(),
        "the topology stands"
    );
    lab.kill();
    assert_eq!(bench.journals(), 1);
    assert!(
        !Bench::namespaces_of(process).is_empty(),
        "it was not removed"
    );

    let restored = bench.output(&["restore"]);
    let said = String::from_utf8_lossy(&restored.stdout);
    assert!(restored.status.success(), "{said}");
    assert!(Bench::namespaces_of(process).is_empty());
    assert!(bench.processes().is_empty());
    assert_eq!(bench.journals(), 0, "{said}");
}
