//! Kernel sockets beside a stack of our own, as the programs run them.

use crate::kernel::{KernelEngine, KernelOptions};
use mill_bypass::link::Link;
use mill_bypass::{BypassEngine, StackOptions};
use std::io;
use std::os::fd::AsFd;

/// Makes a thread's engine over a link whose descriptor is readable while frames wait.
pub fn combine<L: Link + AsFd + 'static>(
    options: KernelOptions,
    bypass: Option<StackOptions<L>>,
) -> io::Result<BypassEngine<L, KernelEngine>> {
    let kernel = KernelEngine::new(options)?;
    if let Some(bypass) = &bypass {
        kernel.watch(bypass.link.as_fd())?;
    }
    Ok(BypassEngine::new(kernel, bypass))
}
