//! Heap allocations by valgrind, which counts those of a whole run. Memory that a server takes from mappings of its
//! own, or from an allocator linked into it, is not counted.

/// Valgrind writes to the standard error that the server was started with. With files it would name those after a
/// fork, from an argument that a server may have overwritten with its title.
pub(crate) const WRAPPER: [&str; 5] = [
    "valgrind",
    "--tool=memcheck",
    "--leak-check=no",
    "--undef-value-errors=no",
    "--trace-children=yes",
];

/// The allocations of all processes of a run, if all have printed theirs. Each does at its orderly end: "total heap
/// usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated".
pub(crate) fn sum(text: &str, processes: usize) -> Option<f64> {
    let counts = text.split("total heap usage: ").skip(1).map(|line| {
        let (count, _) = line.split_once(" allocs")?;
        count.replace(',', "").parse::<f64>().ok()
    });
    let counts: Vec<f64> = counts.collect::<Option<_>>()?;
    (counts.len() >= processes).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocations_of_all_processes_are_added_if_all_printed_theirs() {
        let told =
            "==7==   total heap usage: 1,234,567 allocs, 3 frees, 9 bytes allocated\n==7==\n";
        let both = format!("{told}==8==   total heap usage: 10 allocs, 3 frees\n");
        assert_eq!(sum(&both, 2), Some(1_234_577.0));
        for text in ["==7== killed\n", told, &both.replace("10", "many")] {
            assert_eq!(sum(text, 2), None, "{text}");
        }
    }
}
