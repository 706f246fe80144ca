//! The text that `ps` shows for a process: its argument area, overwritten.
//!
//! ```text
//! arg_start            arg_end = env_start        env_end      (proc(5), /proc/self/stat, fields 48 to 51)
//! | argv[0] 0 argv[1] 0 | NAME=VALUE 0 NAME=VALUE 0 |
//! | title 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 |
//! ```

use crate::process;
use std::io;

/// The argument area together with the environment's; one a process.
#[derive(Debug)]
pub struct Title {
    start: usize,
    size_bytes: usize,
}

impl Title {
    /// Moves the environment elsewhere and takes the area. From now on `std::env::args` is meaningless: read it before.
    /// Refused (`EBUSY`) unless the caller is the only thread.
    pub fn claim() -> io::Result<Self> {
        // Variables that are set anew are allocated elsewhere.
        let variables: Vec<_> = std::env::vars_os().collect();
        process::set_environment(&variables)?;
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        let (start, end) = parse(&stat).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            start,
            size_bytes: end - start,
        })
    }

    /// Shows another text, truncated to the area.
    pub fn set(&mut self, text: &str) {
        let Some(most) = self.size_bytes.checked_sub(1) else {
            return;
        };
        let shown = text.as_bytes();
        let shown = shown.get(..most).unwrap_or(shown);
        let area: *mut u8 = std::ptr::with_exposed_provenance_mut(self.start);
        // SAFETY: the kernel put arguments and environment into this part of the stack, which stays mapped and
        // writable; nothing refers to the environment there any more (moved in `claim`), and code that still reads
        // arguments finds a NUL before the end.
        unsafe { area.write_bytes(0, self.size_bytes) };
        // SAFETY: as above; `shown` is shorter than the area and elsewhere.
        unsafe { area.copy_from_nonoverlapping(shown.as_ptr(), shown.len()) };
    }
}

/// Start of the arguments and end of the environment, if the two are adjacent.
fn parse(stat: &str) -> Option<(usize, usize)> {
    // Field 2, the name in parentheses, may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(ARG_START_FIELD - 3);
    let mut next = || fields.next()?.parse::<usize>().ok();
    let (arg_start, arg_end, env_start, env_end) = (next()?, next()?, next()?, next()?);
    let in_order = 0 < arg_start && arg_start < arg_end && arg_end == env_start;
    (in_order && env_start <= env_end).then_some((arg_start, env_end))
}

/// Number of the field `arg_start`, counted from 1 (proc(5)).
const ARG_START_FIELD: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_found_whatever_the_name_of_the_process() {
        let fields: Vec<String> = (4..48).map(|number| number.to_string()).collect();
        let fields = fields.join(" ");
        let stat = |area: &str| format!("1 (a) b (c) S {fields} {area} 0\n");
        assert_eq!(parse(&stat("100 150 150 200")), Some((100, 200)));
        assert_eq!(parse(&stat("100 150 160 200")), None);
        assert_eq!(parse(&stat("0 0 0 0")), None);
        assert_eq!(parse("1 (a"), None);
    }
}
