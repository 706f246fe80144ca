//! Secrets of TLS (`ssl_key_log`), as lines of a log.

use super::WorkerLog;
use super::queue::PlaceRef;
use mill_config::Text;
use mill_tls::key_log;

/// Adds those of this turn to its lines.
pub(super) fn gather(log: &WorkerLog) {
    for line in key_log::take() {
        let path = &Text::from(&*line.path);
        let place = PlaceRef::Opened { path, buffer: None };
        log.add_line(place, line.text.as_bytes());
    }
}
