//! Sizes of buffers that depend on each other are checked after inheritance.

use std::sync::Arc;

use crate::config::settings::PassSettings;
use crate::config::{Instruction, Location, LocationTree, LogLevel, PassProtocol, Server};
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::resolve::Applied;

/// Refuses the first location whose buffers do not fit together; `end` is the end of the http block, which nginx names.
pub(crate) fn check(servers: &[Arc<Server>], end: &SourcePosition) -> Applied {
    let told = |message| Box::new(Diagnostic::new(LogLevel::Emerg, message, end.clone()));
    servers.iter().try_for_each(|s| server(s).map_err(told))
}

fn server(place: &Server) -> Result<(), String> {
    location(&place.location)?;
    tree(&place.locations)?;
    let mut named = place.named_locations.iter();
    named.try_for_each(|(_, named)| location(named))
}

fn tree(locations: &LocationTree) -> Result<(), String> {
    locations.iter().try_for_each(|inner| location(inner))
}

fn location(place: &Location) -> Result<(), String> {
    for protocol in [
        PassProtocol::Http,
        PassProtocol::Fastcgi,
        PassProtocol::Uwsgi,
        PassProtocol::Scgi,
    ] {
        buffers(place.pass_settings(protocol), protocol.prefix())?;
    }
    if let Some(limit) = &place.limit_except {
        location(&limit.location)?;
    }
    instructions(&place.instructions)?;
    tree(&place.locations)
}

fn instructions(list: &[Instruction]) -> Result<(), String> {
    for instruction in list {
        if let Instruction::If {
            body,
            location: inner,
            ..
        } = instruction
        {
            instructions(body)?;
            inner.iter().try_for_each(|inner| location(inner))?;
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
