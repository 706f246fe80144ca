//! What depends on several directives is checked after inheritance: sizes of buffers, keys of caches.

use std::sync::Arc;

use crate::config::settings::{PassCache, PassSettings};
use crate::config::{Instruction, Location, LocationTree, LogLevel, PassProtocol, Server};
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::resolve::Applied;

/// What is asked of a location; the text of the error if it is refused.
type Visit<'v> = &'v mut dyn FnMut(&Location) -> Result<(), String>;

/// Protocols whose answers are read into buffers and kept in caches.
const BUFFERED: [PassProtocol; 4] = [
    PassProtocol::Http,
    PassProtocol::Fastcgi,
    PassProtocol::Uwsgi,
    PassProtocol::Scgi,
];

/// Refuses the first location whose buffers do not fit together; `end` is the end of the http block, which nginx names.
pub(crate) fn check(servers: &[Arc<Server>], end: &SourcePosition) -> Applied {
    let told = |message| Box::new(Diagnostic::new(LogLevel::Emerg, message, end.clone()));
    let fit = &mut |place: &Location| {
        let mut protocols = BUFFERED.iter();
        protocols.try_for_each(|&of| buffers(place.pass_settings(of), of.prefix()))
    };
    servers
        .iter()
        .try_for_each(|s| server(s, fit))
        .map_err(told)
}

/// Warnings about caches that keep all answers under one key, once for each protocol. `proxy_pass` has a key by default.
pub(crate) fn missing_keys(servers: &[Arc<Server>], end: &SourcePosition) -> Vec<Diagnostic> {
    let mut prefixes = Vec::new();
    let collect = &mut |place: &Location| {
        for protocol in BUFFERED.into_iter().skip(1) {
            let cache = place.cache_settings(protocol);
            let lacks = cache.is_some_and(|c| c.cache != PassCache::Off && c.key.is_none());
            if lacks && !prefixes.contains(&protocol.prefix()) {
                prefixes.push(protocol.prefix());
            }
        }
        Ok(())
    };
    // It collects, and refuses nothing.
    let _ = servers.iter().try_for_each(|s| server(s, collect));
    let warnings = prefixes.into_iter().map(|prefix| {
        let message = format!("no \"{prefix}_cache_key\" for \"{prefix}_cache\"");
        let mut warning = Diagnostic::new(LogLevel::Warn, message, end.clone());
        warning.help = Some(String::from("all answers of the cache have one key"));
        warning
    });
    warnings.collect()
}

fn server(place: &Server, visit: Visit<'_>) -> Result<(), String> {
    location(&place.location, visit)?;
    tree(&place.locations, visit)?;
    let mut named = place.named_locations.iter();
    named.try_for_each(|(_, named)| location(named, visit))
}

fn tree(locations: &LocationTree, visit: Visit<'_>) -> Result<(), String> {
    locations
        .iter()
        .try_for_each(|inner| location(inner, visit))
}

fn location(place: &Location, visit: Visit<'_>) -> Result<(), String> {
    visit(place)?;
    if let Some(limit) = &place.limit_except {
        location(&limit.location, visit)?;
    }
    instructions(&place.instructions, visit)?;
    tree(&place.locations, visit)
}

fn instructions(list: &[Instruction], visit: Visit<'_>) -> Result<(), String> {
    for instruction in list {
        if let Instruction::If {
            body,
            location: inner,
            ..
        } = instruction
        {
            instructions(body, visit)?;
            inner.iter().try_for_each(|inner| location(inner, visit))?;
        }
    }
    Ok(())
}

fn buffers(settings: &PassSettings, prefix: &str) -> Result<(), String> {
    let most = format!(
        "the maximum of the value of \"{prefix}_buffer_size\" and one of the \"{prefix}_buffers\""
    );
    let largest = settings.largest_buffer();
    if settings.buffers.count < 2 {
        return Err(format!("there must be at least 2 \"{prefix}_buffers\""));
    }
    let busy = settings.busy_buffers_size();
    if busy < largest {
        return Err(format!(
            "\"{prefix}_busy_buffers_size\" must be equal to or greater than {most}"
        ));
    }
    let all_but_one = (settings.buffers.count - 1).saturating_mul(settings.buffers.size);
    if busy > all_but_one {
        return Err(format!(
            "\"{prefix}_busy_buffers_size\" must be less than the size of all \"{prefix}_buffers\" minus one buffer"
        ));
    }
    if settings.temp_file_write_size() < largest {
        return Err(format!(
            "\"{prefix}_temp_file_write_size\" must be equal to or greater than {most}"
        ));
    }
    if (1..largest).contains(&settings.max_temp_file_size) {
        return Err(format!(
            "\"{prefix}_max_temp_file_size\" must be equal to zero to disable temporary files usage or must be equal to or \
             greater than {most}"
        ));
    }
    Ok(())
}
