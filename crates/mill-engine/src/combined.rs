//! Kernel sockets and the stack in one engine, as the programs use them.

use crate::kernel::{KernelEngine, KernelOptions};
use mill_bypass::{BypassEngine, StackOptions};
use mill_device::AnyLink;
use mill_device::attach::Trouble;
use mill_device::attachment::WorkerAttachment;
use mill_runtime::engine::Engine;
use std::io;
use std::os::fd::AsFd;

/// The engine of every thread of the server and of the load generator. Without a [`Bypass`] it is kernel sockets alone,
/// at the cost of one comparison a call.
pub type CombinedEngine = BypassEngine<AnyLink, KernelEngine>;

/// The link that is bypassed, and the host on it.
pub type Bypass = StackOptions<AnyLink>;

/// What a worker's attachment gives an engine to bypass the kernel with. `on_trouble` is called once for each kind of
/// trouble.
pub fn bypass(
    worker: WorkerAttachment,
    on_trouble: impl Fn(Trouble) + Clone + Send + 'static,
) -> io::Result<Bypass> {
    let polling = worker.specification().polling;
    let send_buffer_bytes = worker.specification().send_buffer_bytes;
    let (link, host) = worker.link(on_trouble)?;
    Ok(Bypass {
        polling,
        send_buffer_bytes,
        ..Bypass::new(link, host)
    })
}

/// Makes a thread's engine. A bypass costs a few more system calls; errors are those of [`KernelEngine::new`].
pub fn engine(options: KernelOptions, mut bypass: Option<Bypass>) -> io::Result<CombinedEngine> {
    let kernel = KernelEngine::new(options)?;
    if let Some(bypass) = &mut bypass {
        if bypass.polling.is_woken() {
            // A link that owns its device only at times watches the descriptor itself.
            if bypass.link.set_watcher(kernel.watcher()?).is_some() {
                kernel.watch(bypass.link.as_fd())?;
            }
            for queue in bypass.link.other_queues() {
                kernel.watch(queue)?;
            }
            if let Some(doorbell) = bypass.link.doorbell_fd() {
                kernel.watch_changes(doorbell)?;
            }
        }
        for control_fd in bypass.link.control_fds() {
            kernel.watch(control_fd)?;
        }
    }
    Ok(BypassEngine::new(kernel, bypass))
}

/// A bypass is made by one thread and used by another. A stream's handle is part of each idle connection's memory.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Bypass>();
    assert!(size_of::<<CombinedEngine as Engine>::Stream>() <= 24);
};
