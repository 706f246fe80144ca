//! Variables that the configuration defines: `set`, `map`, named captures.

use crate::local::Local;
use crate::log::Text;
use crate::request::Request;
use crate::variables;
use mill_config::config::{LogLevel, Map};
use mill_runtime::engine::Engine;
use std::borrow::Cow;
use std::sync::Arc;

/// The assigned value; or that of its `map`, kept unless the map is volatile; or none, with a warning.
pub(super) fn value<'a, E: Engine>(
    index: usize,
    request: &'a mut Request,
    local: &Local<E>,
) -> Option<Cow<'a, [u8]>> {
    if request.variables.get(index)?.is_none() {
        let site = Arc::clone(&request.site);
        let http = site.config.http.as_ref()?;
        let definition = http.user_variables.get(index)?;
        let map = definition.map.and_then(|map| http.maps.get(map));
        if request.variable_depth >= DEPTH_MAX {
            let name = Text(&definition.name);
            local.log_error(
                Some(request),
                LogLevel::Error,
                format_args!("cycle while evaluating variable \"{name}\""),
            );
            return None;
        }
        let value = match map {
            Some(map) => {
                request.variable_depth += 1;
                let value = look_up(map, request, local);
                request.variable_depth -= 1;
                if map.volatile {
                    return Some(Cow::Owned(value));
                }
                value
            }
            // A named capture that did not match has no value; a variable that `set` assigns to is empty.
            None if !site.mentions.is_assigned(index) => return None,
            None => {
                warn(&definition.name, request, local);
                Vec::new()
            }
        };
        *request.variables.get_mut(index)? = Some(value);
    }
    request.variables.get(index)?.as_deref().map(Cow::Borrowed)
}

/// How deep maps may refer to maps (nginx's limit).
const DEPTH_MAX: u8 = 100;

fn look_up<E: Engine>(map: &Map, request: &mut Request, local: &Local<E>) -> Vec<u8> {
    let subject = variables::evaluate(&map.source, request, local);
    let mut captures = Vec::new();
    let Some(found) = map.find(&subject, &mut captures) else {
        return Vec::new();
    };
    if !captures.is_empty() {
        let decisive = map
            .patterns
            .iter()
            .find(|(_, value)| std::ptr::eq(value, found));
        request.keep_captures(decisive.map(|(pattern, _)| pattern), &subject, captures);
    }
    variables::evaluate(&found.0, request, local)
}

fn warn<E: Engine>(name: &[u8], request: &mut Request, local: &Local<E>) {
    if request.location.rewrite.uninitialized_variable_warn {
        request.pure = false;
        // Once the answer is being sent, only the access log evaluates variables.
        let action = if request.sent.bytes > 0 {
            " while logging request"
        } else {
            ""
        };
        let name = Text(name);
        local.log_error(
            Some(request),
            LogLevel::Warn,
            format_args!("using uninitialized \"{name}\" variable{action}"),
        );
    }
}
