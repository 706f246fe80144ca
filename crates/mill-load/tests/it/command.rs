//! Command lines of every tool, over a simulated world.

use crate::sim_platform::SimPlatform;
use mill_load::dialect::{ab, wrk, wrk2};
use mill_load::native;
use mill_load::native::terminal::Terminal;

/// The output of a command line, and its exit status.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a command line that begins with the tool's name.
pub(crate) fn run(platform: &SimPlatform, line: &str) -> Said {
    let (tool, rest) = line.split_once(' ').unwrap_or((line, ""));
    let arguments: Vec<Vec<u8>> = rest.split_whitespace().map(Vec::from).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = match tool {
        "load" => {
            let terminal = Terminal::default();
            native::main(&arguments, platform, &mut out, &mut err, terminal)
        }
        "wrk" => wrk::main(&arguments, platform, &mut out, &mut err),
        "wrk2" => wrk2::main(&arguments, platform, &mut out, &mut err),
        "ab" => ab::main(&arguments, platform, &mut out, &mut err),
        tool => panic!("{tool} is no tool of ours"),
    };
    let text = |bytes| String::from_utf8(bytes).expect("reports are UTF-8");
    Said {
        status,
        out: text(out),
        err: text(err),
    }
}
