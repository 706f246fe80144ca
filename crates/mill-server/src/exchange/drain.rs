//! Waiting until the transport has taken what was written.

use super::SendError;
use crate::local::Local;
use mill_config::config::settings::ConnectionSettings;
use mill_runtime::engine::Engine;
use mill_runtime::stream::{Stream, StreamOption};
use mill_tls::transport::TransportOf;
use std::future::poll_fn;
use std::task::Poll;

/// Waits until at most `most` bytes are queued, as long as the client takes something every `send_timeout`. Each time
/// that it has to wait, it calls `meanwhile`.
pub(crate) async fn drain<E: Engine>(
    stream: &TransportOf<E>,
    local: &Local<E>,
    settings: &ConnectionSettings,
    most: u64,
    mut meanwhile: impl FnMut(),
) -> Result<(), SendError> {
    let timeout = settings.send_timeout;
    let mut taken = stream.sent();
    let mut deadline = local.scheduler.now() + timeout;
    let drained = poll_fn(|_| match stream.poll_drained(most) {
        Poll::Ready(result) => Poll::Ready(result.map_err(SendError::Lost)),
        Poll::Pending => {
            if stream.sent() > taken {
                taken = stream.sent();
                deadline = local.scheduler.now() + timeout;
            }
            meanwhile();
            local
                .scheduler
                .poll_deadline(deadline)
                .map(|_| Err(SendError::TimedOut))
        }
    });
    let result = drained.await;
    if result == Err(SendError::TimedOut) && settings.reset_timedout {
        // A stream without the option is closed with FIN, the default.
        let _ = stream.set(StreamOption::ResetOnClose);
    }
    result
}
