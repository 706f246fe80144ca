//! `[size.smoke]`, `[size.standard]`, `[size.seed]`: the same experiment in minutes, in an hour, and as the document
//! ran it.

use super::RecipeError;
use super::source::Source;

/// The default size.
pub const DEFAULT_SIZE: &str = "smoke";

/// Every recipe has these; a recipe without a table for a size is run unchanged.
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
        let names = with_own(sizes.table.keys()).join(", ");
        return Err(source.error(&[], format!("there is no size `{size}`; there are {names}")));
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

/// The sizes of a recipe: those that all have, then its own.
pub(super) fn names(source: &Source) -> Vec<String> {
    let sizes = source.table.get("size").and_then(toml::Value::as_table);
    with_own(sizes.into_iter().flat_map(toml::Table::keys))
}

fn with_own<'a>(own: impl Iterator<Item = &'a String>) -> Vec<String> {
    let own = own.filter(|name| !SIZES.contains(&name.as_str()));
    SIZES
        .map(String::from)
        .into_iter()
        .chain(own.cloned())
        .collect()
}
