//! No content is converted: if both `charset` and `source_charset` are known, they must agree.

use std::sync::Arc;

use crate::config::settings::Charset;
use crate::config::{Instruction, Location, LocationTree, LogLevel, Server};
use crate::diagnostic::{Diagnostic, SourcePosition};
use crate::resolve::Applied;

/// Refuses the first place where the two differ, with nginx's message for a missing `charset_map`.
pub(crate) fn check(servers: &[Arc<Server>]) -> Applied {
    for server in servers {
        location(&server.location)?;
        tree(&server.locations)?;
        for (_, named) in &server.named_locations {
            location(named)?;
        }
    }
    Ok(())
}

fn tree(locations: &LocationTree) -> Applied {
    locations.iter().try_for_each(|inner| location(inner))
}

fn location(place: &Location) -> Applied {
    if let (Charset::Named(from), Charset::Named(to)) = (&place.charset.source, &place.charset.name)
        && !from.eq_ignore_ascii_case(to)
    {
        let (from, to) = (from.display(), to.display());
        let message = format!("no \"charset_map\" between the charsets \"{from}\" and \"{to}\"");
        let mut error = Diagnostic::new(LogLevel::Emerg, message, SourcePosition::None);
        error.help = Some(String::from(
            "\"charset_map\" is known to nginx, but not to Millstream yet: content is sent as it is",
        ));
        return Err(Box::new(error));
    }
    if let Some(limit) = &place.limit_except {
        location(&limit.location)?;
    }
    instructions(&place.instructions)?;
    tree(&place.locations)
}

fn instructions(list: &[Instruction]) -> Applied {
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
