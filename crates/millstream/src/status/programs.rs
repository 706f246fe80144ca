//! Programs of `millstream run`, beside our own servers.

use mill_keeper::accelerated::kernel_connections::KernelConnections;
use mill_keeper::accelerated::search::{self, Found};
use mill_status::text::columns::{Columns, Side};

/// Processes that were found.
#[derive(Debug, Default)]
pub(super) struct Programs {
    accelerated: Vec<Found>,
    /// Those whose connections are the kernel's: numbers and names.
    on_kernel: Vec<(u32, String)>,
}

impl Programs {
    /// All that this user may look at.
    pub(super) fn all() -> Self {
        let accelerated = search::all();
        let on_kernel = search::on_kernel(&accelerated);
        Self {
            accelerated,
            on_kernel,
        }
    }

    /// Those that a word names: a process, a program, an interface, or `EF_CLUSTER_NAME`.
    pub(super) fn called(mut self, word: &str) -> Self {
        self.accelerated.retain(|found| {
            let shown = &found.shown;
            let names = [&*shown.program, &*shown.interface, shown.cluster_name()];
            found.process.to_string() == word || names.contains(&word)
        });
        self.on_kernel
            .retain(|(process, name)| process.to_string() == word || name == word);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.accelerated.is_empty() && self.on_kernel.is_empty()
    }

    /// A line each.
    pub(super) fn table(&self) -> String {
        let mut of_kernel = KernelConnections::default();
        self.table_with(|process| of_kernel.of(process))
    }

    /// The same, with the number of connections of each process that are the kernel's, if it is known.
    fn table_with(&self, mut of_kernel: impl FnMut(u32) -> Option<usize>) -> String {
        let mut of_kernel = |process: u32| {
            let count = of_kernel(process);
            count.map_or_else(|| String::from("-"), |count| count.to_string())
        };
        let right = Side::Right;
        let mut table = Columns::new(&[
            ("PROCESS", right),
            ("PROGRAM", Side::Left),
            ("INTERFACE", Side::Left),
            ("PATH", Side::Left),
            ("LISTENERS", right),
            ("CONNS", right),
            ("KERNEL", right),
        ]);
        for Found { process, shown } in &self.accelerated {
            table.push(vec![
                process.to_string(),
                shown.program.clone(),
                shown.interface.clone(),
                String::from("stack"),
                shown.listeners.len().to_string(),
                shown.connections_total.to_string(),
                of_kernel(*process),
            ]);
        }
        for (process, name) in &self.on_kernel {
            let none = || String::from("-");
            table.push(vec![
                process.to_string(),
                name.clone(),
                none(),
                String::from("kernel"),
                none(),
                none(),
                of_kernel(*process),
            ]);
        }
        table.render()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_keeper::accelerated::Accelerated;

    fn programs() -> Programs {
        let shown = Accelerated {
            program: String::from("nginx"),
            interface: String::from("eth0"),
            cluster: Some(String::from("webs")),
            connections_total: 12,
            ..Accelerated::default()
        };
        Programs {
            accelerated: vec![Found {
                process: 4712,
                shown,
            }],
            on_kernel: vec![(4711, String::from("nginx"))],
        }
    }

    #[test]
    fn the_path_of_each_process_is_told() {
        let expected = "\
PROCESS  PROGRAM  INTERFACE  PATH    LISTENERS  CONNS  KERNEL
   4712  nginx    eth0       stack           0     12       3
   4711  nginx    -          kernel          -      -       -
";
        let of_kernel = |process| (process == 4712).then_some(3);
        assert_eq!(programs().table_with(of_kernel), expected);
    }

    #[test]
    fn a_word_names_processes_programs_and_interfaces() {
        let counts = |word: &str| {
            let called = programs().called(word);
            [called.accelerated.len(), called.on_kernel.len()]
        };
        assert_eq!(counts("nginx"), [1, 1]);
        assert_eq!(counts("4711"), [0, 1]);
        assert_eq!(counts("4712"), [1, 0]);
        assert_eq!(counts("eth0"), [1, 0]);
        assert_eq!(counts("webs"), [1, 0]);
        assert!(programs().called("47").is_empty());
    }
}
