//! `[size.smoke]`, `[size.standard]`, `[size.seed]`: the same experiment in minutes, in an hour, and as the document
//! ran it.

use super::RecipeError;
use super::source::Source;

/// What is run when nobody names a size.
pub const DEFAULT_SIZE: &str = "smoke";

/// Every recipe has these; one that says nothing of a size is run as it stands.
pub const SIZES: [&str; 3] = ["smoke", "standard", "seed"];

/// Lays one size over the rest and forgets the others.
pub(super) fn lay(source: &mut Source, size: &str) -> Result<(), RecipeError> {
    let not_a_table = source
        .table
        .get("size")
        .is_some_and(|size| !size.is_table());
    if not_a_table {
        return Err(source.error(&["size"], "sizes are tables: `[size.smoke]`"));
    }
    let mut sizes = source.take("size").unwrap_or_default();
    let size = if size.is_empty() { DEFAULT_SIZE } else { size };
    if !SIZES.contains(&size) && !sizes.table.contains_key(size) {
        let own = sizes.table.keys().map(String::as_str);
        let own = own.filter(|name| !SIZES.contains(name));
        let names: Vec<&str> = SIZES.into_iter().chain(own).collect();
        let problem = format!("there is no size `{size}`; there are {}", names.join(", "));
        return Err(source.error(&[], problem));
    }
    if sizes
        .table
        .get(size)
        .is_some_and(|overlay| !overlay.is_table())
    {
        return Err(sizes.error(&[size], format!("`[size.{size}]` has to be a table")));
    }
    if let Some(overlay) = sizes.take(size) {
        source.lay(overlay);
    }
    Ok(())
}
