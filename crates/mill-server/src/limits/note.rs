//! What limits have made of a request; kept until it is logged.

use super::connections::Counted;
use super::status::{ConnectionStatus, RequestStatus};
use mill_config::config::settings::LimitReqSettings;
use std::sync::Arc;

/// Of a request that has come to a location with limits. Each kind is examined once, in the first location in which the
/// request has a key for it.
#[derive(Debug, Default)]
pub(crate) struct LimitNote {
    pub(crate) requests: Option<RequestStatus>,
    /// The limits by which it was counted.
    pub(crate) counted_by: Option<Arc<LimitReqSettings>>,
    pub(crate) connections: Option<ConnectionStatus>,
    /// It counts as long as it is there.
    pub(crate) counted: Vec<Counted>,
}
