//! JSON values (RFC 8259).

/// A JSON value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(&'static str, Self)>),
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    /// A whole number; above 2^53 the nearest that a reader of JSON can tell from others.
    pub(super) const fn count(number: u64) -> Self {
        Self::Number(number as f64)
    }

    pub(super) fn list<T>(items: &[T], emit: impl FnMut(&T) -> Self) -> Self {
        Self::List(items.iter().map(emit).collect())
    }

    /// What is absent is null.
    pub(super) fn of<T>(item: Option<T>, emit: impl FnOnce(T) -> Self) -> Self {
        item.map_or(Self::Null, emit)
    }

    /// A text that ends with a line end.
    pub(super) fn emit_document(&self) -> String {
        let mut out = String::new();
        self.emit(&mut out);
        out.push('\n');
        out
    }

    pub(super) fn emit(&self, out: &mut String) {
        match self {
            Self::Number(number) if number.is_finite() => *out += &number.to_string(),
            // JSON has no word for an infinite number or none.
            Self::Null | Self::Number(_) => *out += "null",
            Self::Text(text) => emit_string(text, out),
            Self::List(values) => {
                out.push('[');
                for (index, value) in values.iter().enumerate() {
                    *out += if index == 0 { "" } else { "," };
                    value.emit(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    *out += if index == 0 { "\n" } else { ",\n" };
                    emit_string(name, out);
                    out.push(':');
                    value.emit(out);
                }
                out.push('}');
            }
        }
    }
}

/// RFC 8259 section 7.
fn emit_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => *out += "\\\"",
            '\\' => *out += "\\\\",
            control if control < ' ' => *out += &format!("\\u{:04x}", u32::from(control)),
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::Value;

    fn check(value: &Value, expected: &str) {
        let mut out = String::new();
        value.emit(&mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn values_are_written_as_json_has_them() {
        check(&Value::Number(f64::INFINITY), "null");
        check(&Value::Number(0.25), "0.25");
        check(&Value::Text("a\"b\\c\n".to_owned()), r#""a\"b\\c\u000a""#);
        check(
            &Value::List(vec![Value::Null, Value::Number(1.0)]),
            "[null,1]",
        );
        check(
            &Value::Object(vec![("a", Value::Number(1.0)), ("b", Value::Null)]),
            "{\n\"a\":1,\n\"b\":null}",
        );
    }

    #[test]
    fn a_document_is_a_text_with_its_last_line_ended() {
        let list = Value::list(&[1, 2], |number| Value::count(*number));
        let document = Value::List(vec![list, Value::of(None, Value::count)]);
        assert_eq!(document.emit_document(), "[[1,2],null]\n");
    }
}
