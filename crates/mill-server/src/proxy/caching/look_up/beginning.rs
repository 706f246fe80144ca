//! Which zone, and which key.

use super::Looking;
use crate::cache::field_lines;
use crate::local::Local;
use crate::log::Text;
use crate::proxy::http::emit_uri;
use crate::proxy::target::Target;
use crate::request::Request;
use crate::variables;
use mill_config::config::LogLevel;
use mill_config::config::pass::PassProtocol;
use mill_config::config::settings::PassCache;
use mill_http::caching::request_directives::RequestDirectives;
use mill_runtime::engine::Engine;
use std::rc::Rc;
use std::sync::Arc;

impl Looking {
    pub(in crate::proxy::caching) fn begin<E: Engine>(
        target: &Target,
        request: &mut Request,
        local: &Local<E>,
    ) -> Option<Self> {
        let location = Arc::clone(&request.location);
        let protocol = target.pass.protocol;
        let settings = location.cache_settings(protocol)?;
        let index = match &settings.cache {
            PassCache::Off => return None,
            PassCache::Zone(index) => *index,
            PassCache::Evaluated(template) => {
                let name = variables::evaluate(template, request, local);
                if matches!(name.as_slice(), b"" | b"off") {
                    return None;
                }
                let http = request.site.config.http.as_ref();
                let zone = http.and_then(|http| http.cache_zone(protocol, &name));
                let Some(zone) = zone else {
                    let text = format_args!("cache \"{}\" not found", Text(&name));
                    local.log_error(Some(request), LogLevel::Error, text);
                    return None;
                };
                zone.index
            }
        };
        let zone = Arc::clone(request.site.caches.zone(index)?);
        let mut text = local.take_buffer();
        match &settings.key {
            Some(template) => variables::append(template, request, local, &mut text),
            None if protocol == PassProtocol::Http => emit_default_key(target, request, &mut text),
            None => {}
        }
        let key = Rc::from(text.as_slice());
        local.put_buffer(text);
        Some(Self {
            zone,
            rules: location.caching.rules,
            settings: Arc::clone(settings),
            key,
            directives: RequestDirectives::of_fields(field_lines(request)),
            ticket: None,
            stale: None,
            passes_range: false,
            is_disk_tried: false,
            has_others: false,
        })
    }
}

/// nginx's default for `proxy_pass`: the server that is asked, and what it is asked.
fn emit_default_key(target: &Target, request: &Request, key: &mut Vec<u8>) {
    let scheme: &[u8] = if target.tls { b"https://" } else { b"http://" };
    key.extend_from_slice(scheme);
    key.extend_from_slice(target.host());
    emit_uri(target, request, key);
}
