//! The table of `limit_req` and `limit_conn`.

use super::columns::{Columns, Side};
use super::number::short;
use crate::tables::Limit;

/// Each zone in one line.
pub(super) fn limits<'l>(limits: impl Iterator<Item = &'l Limit>) -> String {
    let right = Side::Right;
    let mut table = Columns::new(&[
        ("LIMIT", Side::Left),
        ("OF", Side::Left),
        ("KEYS", right),
        ("PASSED", right),
        ("DELAYED", right),
        ("REJECTED", right),
        ("DRY RUN", right),
    ]);
    for limit in limits {
        let delayed = limit.delayed.map(short);
        table.push(vec![
            limit.name.clone(),
            limit.kind.clone(),
            short(limit.keys),
            short(limit.passed),
            delayed.unwrap_or_else(|| String::from("-")),
            short(limit.rejected),
            short(limit.dry_run),
        ]);
    }
    table.render()
}
