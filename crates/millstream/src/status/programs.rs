//! Programs of `millstream run`, beside our own servers.

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
        let right = Side::Right;
        let mut table = Columns::new(&[
            ("PROCESS", right),
            ("PROGRAM", Side::Left),
            ("INTERFACE", Side::Left),
            ("PATH", Side::Left),
            ("LISTENERS", right),
            ("CONNS", right),
        ]);
        for Found { process, shown } in &self.accelerated {
            table.push(vec![
                process.to_string(),
                shown.program.clone(),
                shown.interface.clone(),
                String::from("stack"),
                shown.listeners.len().to_string(),
                shown.connections_total.to_string(),
            ]);
        }
        for (process, name) in &self.on_kernel {
            let unknown = || String::from("-");
            let path = String::from("kernel");
            table.push(vec![process.to_string(), name.clone(), unknown(), path]);
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
PROCESS  PROGRAM  INTERFACE  PATH    LISTENERS  CONNS
   4712  nginx    eth0       stack           0     12
   4711  nginx    -          kernel
";
        assert_eq!(programs().table(), expected);
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
