//! How fast an answer may go out, or come from a server: amounts with variables.

use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use crate::variables;
use mill_config::config::settings::Amount;
use mill_config::config::{LogLevel, Template};
use mill_config::value;
use mill_runtime::engine::Engine;
use std::sync::Arc;

/// Evaluates them once the location is final. A value assigned to `$limit_rate` by `set` stays.
pub(super) fn resolve<E: Engine>(request: &mut Request, local: &Local<E>) {
    let location = Arc::clone(&request.location);
    if let (None, Amount::Evaluated(rate)) = (request.limit_rate, &location.limit_rate.rate) {
        request.limit_rate = Some(evaluate(rate, request, local));
    }
    if let Amount::Evaluated(after) = &location.limit_rate.after {
        request.limit_rate_after = Some(evaluate(after, request, local));
    }
}

/// An empty value is 0, and so is an invalid one, which is logged.
pub(crate) fn evaluate<E: Engine>(
    template: &Template,
    request: &mut Request,
    local: &Local<E>,
) -> u64 {
    let text = variables::evaluate(template, request, local);
    if text.is_empty() {
        return 0;
    }
    value::size(&text).unwrap_or_else(|| {
        local.log_error(
            Some(request),
            LogLevel::Error,
            format_args!("invalid size \"{}\"", Text(&text)),
        );
        0
    })
}
