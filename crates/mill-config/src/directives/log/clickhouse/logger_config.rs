//! `tfw_logger.json`, the file of Tempesta FW's logger, as it stands.

use serde_json::{Map, Value};
use std::time::Duration;

use super::{HTTP_PORT, account, default_table, events, host, name, wait};
use crate::Text;
use crate::config::log::RowTable;
use crate::lexer::Statement;
use crate::resolve::{Applied, Resolver};

/// The table that a file names.
pub(super) fn read(
    resolver: &mut Resolver<'_>,
    statement: &Statement,
    path: &[u8],
) -> Applied<RowTable> {
    let word = statement.arg(1);
    let shown = String::from_utf8_lossy(path);
    let content = resolver.source.read_secret(path).map_err(|error| {
        let message = format!("open() \"{shown}\" failed ({}: {})", error.code, error.text);
        resolver.emerg(statement, word, message)
    })?;
    let parsed = parse(&content);
    let (table, native) = parsed.map_err(|(what, help)| {
        let mut error = resolver.emerg(statement, word, format!("{what} in \"{shown}\""));
        error.help = Some(help);
        error
    })?;
    if native {
        let message = format!(
            "port {NATIVE_PORT} in \"{shown}\" is that of ClickHouse's own protocol: rows go to its HTTP interface, port {HTTP_PORT}"
        );
        let help = "say \"port\": 8123, which is what is used here";
        resolver.notice(statement, word, message, help);
        // Of Tempesta FW's language a statement stands for each vhost.
        if let Some((last, before)) = resolver.remarks.split_last()
            && before.contains(last)
        {
            resolver.remarks.pop();
        }
    }
    Ok(table)
}

/// What a text must be.
type Check = fn(&[u8]) -> Option<Text>;

/// What is wrong, and what to do.
type Wrong = (String, String);

/// The table, and whether its port was that of ClickHouse's own protocol.
fn parse(content: &[u8]) -> Result<(RowTable, bool), Wrong> {
    let root: Value = serde_json::from_slice(content).map_err(|error| {
        let help = "it is the JSON of Tempesta FW's logger, such as etc/tfw_logger.json";
        (error.to_string(), String::from(help))
    })?;
    let fields = root.get("access_log").and_then(Value::as_object);
    let Some(fields) = fields else {
        let help = "it has the table: \"access_log\": { \"host\": \"localhost\", \"table_name\": \"access_log\" }";
        return Err((String::from("no object \"access_log\""), String::from(help)));
    };
    let mut table = default_table();
    for (field, what) in [
        ("max_events", "a number from 1 to 100000"),
        ("max_wait_ms", "1 to 60000"),
    ] {
        let Some(number) = number(fields, field)? else {
            continue;
        };
        let set = match field {
            "max_events" => events(number).map(|number| table.max_events = number),
            _ => wait(Duration::from_millis(number)).map(|time| table.max_wait = time),
        };
        set.ok_or_else(|| invalid(field, what))?;
    }
    let letters = "letters, digits and _, up to 128 of them";
    let texts: [(&str, Check, &mut Text, &str); 5] = [
        ("host", host, &mut table.host, "a name or an address"),
        ("db_name", name, &mut table.database, letters),
        ("table_name", name, &mut table.table, letters),
        (
            "user",
            account,
            &mut table.user,
            "a text without control characters",
        ),
        (
            "password",
            account,
            &mut table.password,
            "a text without control characters",
        ),
    ];
    for (field, check, place, what) in texts {
        match fields.get(field) {
            None => {}
            Some(Value::String(text)) => {
                *place = check(text.as_bytes()).ok_or_else(|| invalid(field, what))?;
            }
            Some(_) => return Err(invalid(field, what)),
        }
    }
    let port = number(fields, "port")?.unwrap_or(NATIVE_PORT);
    let is_native = port == NATIVE_PORT;
    table.port = match u16::try_from(port) {
        Ok(0) | Err(_) => return Err(invalid("port", "a number from 1 to 65535")),
        Ok(_) if is_native => HTTP_PORT,
        Ok(port) => port,
    };
    Ok((table, is_native && fields.contains_key("port")))
}

/// A number, which may be written as a text.
fn number(fields: &Map<String, Value>, field: &str) -> Result<Option<u64>, Wrong> {
    let number = match fields.get(field) {
        None => return Ok(None),
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64(),
    };
    let number = number.ok_or_else(|| invalid(field, "a number"))?;
    Ok(Some(number))
}

fn invalid(field: &str, what: &str) -> Wrong {
    (format!("invalid \"{field}\""), format!("it is {what}"))
}

/// Of ClickHouse's own protocol, which Tempesta FW's logger speaks.
const NATIVE_PORT: u64 = 9000;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str, expected: Result<&str, &str>) {
        let found = parse(content.as_bytes());
        match (&found, expected) {
            (Ok((table, is_native)), Ok(expected)) => {
                let wait_ms = table.max_wait.as_millis();
                let (user, events) = (table.user.display(), table.max_events);
                let shown = format!("{table} {user} {events} {wait_ms} {is_native}");
                assert_eq!(shown, expected, "{content}");
            }
            (Err((what, _)), Err(expected)) => assert!(what.contains(expected), "{what}"),
            _ => panic!("{found:?} of {content}"),
        }
    }

    #[test]
    fn the_file_of_the_distribution_is_taken() {
        check(
            r#"{ "log_path": "/var/log/tempesta/tfw_logger.log",
                "access_log": { "plugin_path": "/opt/access_log.so", "host": "localhost", "port": 9000,
                    "user": "default", "password": "", "db_name": "default", "table_name": "access_log",
                    "max_events": 1000, "max_wait_ms": 100 } }"#,
            Ok("clickhouse:localhost:8123/default.access_log default 1000 100 true"),
        );
        check(
            r#"{ "access_log": {} }"#,
            Ok("clickhouse:localhost:8123/default.access_log  1000 100 false"),
        );
        check(
            r#"{ "access_log": { "host": "10.0.0.1", "port": "8124", "db_name": "a", "table_name": "b_1", "max_events": "7" } }"#,
            Ok("clickhouse:10.0.0.1:8124/a.b_1  7 100 false"),
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (content, expected) in [
            ("{", "line 1 column 1"),
            ("{}", "\"access_log\""),
            (r#"{ "access_log": { "port": 0 } }"#, "\"port\""),
            (r#"{ "access_log": { "port": 65536 } }"#, "\"port\""),
            (r#"{ "access_log": { "port": [] } }"#, "\"port\""),
            (r#"{ "access_log": { "host": "" } }"#, "\"host\""),
            (
                r#"{ "access_log": { "table_name": "a;b" } }"#,
                "\"table_name\"",
            ),
            (r#"{ "access_log": { "db_name": 1 } }"#, "\"db_name\""),
            (r#"{ "access_log": { "max_events": 0 } }"#, "\"max_events\""),
            (
                r#"{ "access_log": { "max_wait_ms": 0 } }"#,
                "\"max_wait_ms\"",
            ),
            (r#"{ "access_log": { "password": "a\n" } }"#, "\"password\""),
        ] {
            check(content, Err(expected));
        }
    }
}
