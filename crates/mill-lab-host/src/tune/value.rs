//! TOML's values as the kernel's files take them.

use toml::Value;

/// A number as it is, true and false as 1 and 0, a list with blanks between; none for a value that no file takes.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(yes) => Some(String::from(if *yes { "1" } else { "0" })),
        Value::Array(values) => {
            let words: Option<Vec<String>> = values.iter().map(text).collect();
            words.map(|words| words.join(" "))
        }
        Value::Datetime(_) | Value::Table(_) => None,
    }
}

/// As `text`, with `on` and `off`, which is what ethtool(8) says.
pub(super) fn switch(value: &Value) -> Option<String> {
    match value {
        Value::Boolean(yes) => Some(on_off(*yes)),
        _ => text(value),
    }
}

pub(super) fn on_off(yes: bool) -> String {
    String::from(if yes { "on" } else { "off" })
}

/// The message on a value that has no text.
pub(super) const NO_VALUE: &str = "refused: a number, text or a list is wanted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_kernel_reads_them() {
        let table: toml::Table =
            "a = 4096\nb = '9000 65000'\nc = true\nd = [4096, 87380]\ne = {x = 1}\nf = [{}]"
                .parse()
                .unwrap();
        for (key, expected) in [
            ("a", Some("4096")),
            ("b", Some("9000 65000")),
            ("c", Some("1")),
            ("d", Some("4096 87380")),
            ("e", None),
            ("f", None),
        ] {
            assert_eq!(text(&table[key]).as_deref(), expected, "{key}");
        }
        assert_eq!(switch(&table["c"]).as_deref(), Some("on"));
    }
}
