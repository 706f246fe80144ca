//! The table of blocked addresses.

use super::columns::{Columns, Side};
use super::number::uptime;
use crate::document::Status;

/// Each address in one line.
pub fn blocks(status: &Status) -> String {
    let parts = status.parts.iter();
    let mut blocks = parts.flat_map(|part| &part.blocks).peekable();
    if blocks.peek().is_none() {
        return String::from("no blocked addresses\n");
    }
    let right = Side::Right;
    let heads = [
        ("ADDRESS", Side::Left),
        ("SINCE", right),
        ("LEFT", right),
        ("BY", Side::Left),
    ];
    let mut table = Columns::new(&heads);
    for block in blocks {
        let left = block.left_s.map(|seconds| uptime(seconds as f64));
        table.push(vec![
            block.address.clone(),
            uptime(block.since_s as f64),
            left.unwrap_or_else(|| String::from("-")),
            block.reason.clone(),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Block, Part};

    #[test]
    fn blocks_stand_with_what_is_left_of_them() {
        let block = |address: &str, left_s| Block {
            address: address.into(),
            reason: "request_rate".into(),
            since_s: 75,
            left_s,
        };
        let status = Status {
            parts: vec![Part {
                blocks: vec![block("192.0.2.1", Some(3)), block("2001:db8::1", None)],
                ..Part::default()
            }],
            ..Status::default()
        };
        let text = blocks(&status);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["ADDRESS", "SINCE", "LEFT", "BY"]);
        assert_eq!(
            (lines[1][0], lines[1].last()),
            ("192.0.2.1", Some(&"request_rate"))
        );
        assert!(lines[2].contains(&"-"), "{text}");
        assert_eq!(blocks(&Status::default()), "no blocked addresses\n");
    }
}
