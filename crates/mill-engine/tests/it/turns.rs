//! Turns until something has happened.

use crate::server::{PATIENCE, Server};

impl Server {
    /// Turns until `done` holds; fails when it does not for too long.
    pub(crate) fn run_until(&mut self, what: &str, mut done: impl FnMut() -> bool) {
        let give_up = self.now() + PATIENCE;
        while !done() {
            self.turn();
            assert!(self.now() < give_up, "waited for {what}");
        }
    }

    /// Turns until all tasks have ended.
    pub(crate) fn run_out(&mut self) {
        self.run_until_tasks(0);
    }

    /// Turns until `tasks` tasks live.
    pub(crate) fn run_until_tasks(&mut self, tasks: usize) {
        let give_up = self.now() + PATIENCE;
        while self.worker.tasks() != tasks {
            self.turn();
            assert!(
                self.now() < give_up,
                "{} tasks, not {tasks}",
                self.worker.tasks()
            );
        }
    }

    /// Turns often enough for all that is under way to arrive.
    pub(crate) fn run_on(&mut self) {
        for _ in 0..20 {
            self.turn();
        }
    }
}
