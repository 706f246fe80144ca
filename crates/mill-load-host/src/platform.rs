//! The platform of a run.

use crate::interrupt::Interrupts;
use crate::lazy_attachment::LazyAttachment;
use crate::parts::Processes;
use crate::{names, run};
use mill_load::plan::Plan;
use mill_load::platform::{Launcher, Platform, PlatformError, RunOutcome, ThreadInput, Watch};
use mill_load::record::Record;
use mill_runtime::time::UnixTime;
use mill_sys::local_time::local_time;
use mill_sys::{affinity, clock};
use std::net::SocketAddr;
use std::sync::Arc;

/// Kernel sockets, threads of the operating system, its clocks and resolver.
#[derive(Debug)]
pub struct KernelPlatform {
    interrupts: Interrupts,
    processes: Processes,
    stack: Option<Arc<LazyAttachment>>,
}

impl KernelPlatform {
    /// A platform whose runs end early when `interrupts` says so.
    pub fn new(interrupts: Interrupts) -> Self {
        Self {
            processes: Processes::new(interrupts.clone()),
            interrupts,
            stack: None,
        }
    }

    /// The same, with connections over a stack of our own to the targets that it reaches.
    #[must_use]
    pub fn on_stack(self, stack: Option<LazyAttachment>) -> Self {
        Self {
            stack: stack.map(Arc::new),
            ..self
        }
    }
}

impl Default for KernelPlatform {
    fn default() -> Self {
        Self::new(Interrupts::default())
    }
}

impl Platform for KernelPlatform {
    fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        names::resolve(host, port)
    }

    fn accepts(&self, address: SocketAddr) -> bool {
        // The kernel may have no route to a target of the stack.
        self.stack.is_some() || names::accepts(address)
    }

    fn wall_clock(&self) -> UnixTime {
        let wall_clock = clock::realtime();
        UnixTime {
            seconds: i64::try_from(wall_clock.as_secs()).unwrap_or(i64::MAX),
            nanos: wall_clock.subsec_nanos(),
        }
    }

    fn utc_offset_seconds(&self, at: i64) -> i32 {
        local_time(at).map_or(0, |local| local.offset_s)
    }

    fn cpus(&self) -> u32 {
        if self.stack.is_some() {
            // More only on request: some devices have a single attachment.
            return 1;
        }
        let allowed = affinity::allowed_cpus().map_or(1, |cpus| cpus.len());
        u32::try_from(allowed).map_or(1, |cpus| cpus.max(1))
    }

    fn launcher(&self) -> Result<&dyn Launcher, PlatformError> {
        match &self.stack {
            None => Ok(&self.processes),
            Some(stack) => Err(PlatformError(format!(
                "{} can be in one process only: with \"--stack\" load is made by one",
                stack.device().noun()
            ))),
        }
    }

    fn prepare(&self) -> Result<(), PlatformError> {
        match &self.stack {
            Some(stack) => stack.attach_at_all().map_err(PlatformError),
            None => Ok(()),
        }
    }

    fn run<R: Record>(
        &self,
        plan: &Plan,
        inputs: Vec<ThreadInput<R>>,
        watch: &mut dyn Watch<R::Interval>,
    ) -> Result<RunOutcome<R>, PlatformError> {
        let stop = self.interrupts.begin_run();
        if let Some(stack) = &self.stack {
            stack.attach(plan.threads).map_err(PlatformError)?;
        }
        run::run(plan, inputs, watch, (&stop, self.stack.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_has_a_clock_and_cpus() {
        let platform = KernelPlatform::default();
        assert!(platform.cpus() >= 1);
        let now = platform.wall_clock();
        // 2020-01-01: a clock before that is not set.
        assert!(now.seconds > 1_577_836_800, "{now:?}");
        assert!(platform.utc_offset_seconds(now.seconds).abs() <= 14 * 3600);
    }
}
