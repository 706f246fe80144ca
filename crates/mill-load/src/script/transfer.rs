//! Copies values from one Lua state to another, deeply: nothing is shared.

use mlua::{Error, Lua, Result, Table, Value};
use std::collections::BTreeMap;

/// Copies `value` of another state into `target`. A table that occurs several times, also within itself, is copied
/// once. Functions and other values bound to their state are refused.
pub(super) fn transfer(value: &Value, target: &Lua) -> Result<Value> {
    Transfer {
        target,
        copies: BTreeMap::new(),
    }
    .copy(value, 0)
}

struct Transfer<'a> {
    target: &'a Lua,
    /// What has been copied, by the address of the original.
    copies: BTreeMap<usize, Table>,
}

impl Transfer<'_> {
    fn copy(&mut self, value: &Value, depth: u32) -> Result<Value> {
        Ok(match value {
            Value::Nil => Value::Nil,
            Value::Boolean(value) => Value::Boolean(*value),
            Value::Integer(value) => Value::Integer(*value),
            Value::Number(value) => Value::Number(*value),
            Value::String(value) => Value::String(self.target.create_string(value.as_bytes())?),
            Value::Table(table) => Value::Table(self.table(table, depth)?),
            other => {
                let kind = other.type_name();
                return Err(Error::runtime(format!(
                    "cannot transfer '{kind}' to thread"
                )));
            }
        })
    }

    fn table(&mut self, table: &Table, depth: u32) -> Result<Table> {
        let address = table.to_pointer().addr();
        if let Some(copy) = self.copies.get(&address) {
            return Ok(copy.clone());
        }
        if depth == DEPTH_MAX {
            return Err(Error::runtime(format!(
                "cannot transfer a table that is nested more than {DEPTH_MAX} deep"
            )));
        }
        let copy = self.target.create_table()?;
        self.copies.insert(address, copy.clone());
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            copy.raw_set(self.copy(&key, depth + 1)?, self.copy(&value, depth + 1)?)?;
        }
        Ok(copy)
    }
}

/// Nesting of tables: bounds our own stack, far above what scripts exchange.
const DEPTH_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(source: &str, check: &str) -> Result<bool> {
        let (from, to) = (Lua::new(), Lua::new());
        let value: Value = from.load(source).eval()?;
        to.globals().set("v", transfer(&value, &to)?)?;
        to.load(check).eval()
    }

    #[test]
    fn plain_values_and_tables_arrive_as_they_were() {
        for (source, check) in [
            ("nil", "v == nil"),
            ("true", "v == true"),
            ("0.5", "v == 0.5"),
            ("2^53", "v == 2^53"),
            ("'a\\0b'", "v == 'a\\0b'"),
            (
                "{1, 2, {x = {y = 'z'}}, [true] = 1.5}",
                "v[1] == 1 and v[2] == 2 and v[3].x.y == 'z' and v[true] == 1.5 and #v == 3",
            ),
            (
                "(function() local s = {}; return {a = s, b = s} end)()",
                "v.a == v.b",
            ),
            (
                "(function() local t = {}; t.self = t; return t end)()",
                "v.self == v",
            ),
        ] {
            assert!(carried(source, check).unwrap(), "{source}");
        }
    }

    #[test]
    fn a_copy_is_independent_of_its_original() {
        let (from, to) = (Lua::new(), Lua::new());
        let value: Table = from.load("t = {n = {1}}; return t").eval().unwrap();
        let copy = transfer(&Value::Table(value), &to).unwrap();
        from.load("t.n[1] = 2").exec().unwrap();
        to.globals().set("v", copy).unwrap();
        assert_eq!(to.load("v.n[1]").eval::<i64>().unwrap(), 1);
    }

    #[test]
    fn values_bound_to_their_state_are_refused() {
        for source in ["print", "{a = {print}}", "{[print] = 1}", "io.stdout"] {
            let error = carried(source, "true").unwrap_err().to_string();
            assert!(error.contains("cannot transfer '"), "{error}");
        }
        let deep = "(function() local t = {}; for _ = 1, 200 do t = {t} end; return t end)()";
        let error = carried(deep, "true").unwrap_err().to_string();
        assert!(error.contains("nested more than 100"), "{error}");
    }
}
