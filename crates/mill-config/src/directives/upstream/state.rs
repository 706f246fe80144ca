//! `state`: the file that keeps a group's servers.

use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

/// ENOENT: the file has not been written yet.
const NO_SUCH_FILE: i32 = 2;

pub(super) fn state(resolver: &mut Resolver<'_>, statement: &Statement) -> Applied {
    if !resolver.upstream.servers.is_empty() {
        let message = "\"state\" directive is incompatible with \"server\" directive";
        return Err(resolver.emerg(statement, statement.name(), message));
    }
    let path = resolver.full_name(&statement.arg(1).bytes);
    let is_missing = matches!(
        resolver.source.read(&path),
        Err(error) if error.code == NO_SUCH_FILE
    );
    if !is_missing {
        resolver.file(&path, Some(statement))?;
    }
    resolver.upstream.state = Some(path);
    Ok(())
}
