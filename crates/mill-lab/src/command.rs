//! The load that a client's command line requests.

/// How long a client with these arguments takes; none if it ends after a number of requests, or without a given
/// limit.
#[must_use]
pub fn seconds_asked(tool: &str, args: &str) -> Option<f64> {
    ClientCommand::parse(&format!("{tool} {args}"))?.seconds
}

/// The options of wrk, ab and h2load that decide what a figure is a figure of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClientCommand {
    /// The program's name, without its folder.
    pub(crate) tool: String,
    pub(crate) connections: Option<f64>,
    pub(crate) threads: Option<f64>,
    pub(crate) seconds: Option<f64>,
    pub(crate) requests: Option<f64>,
    /// Whether each request has a connection of its own; none if the command line does not tell.
    pub(crate) closes: Option<bool>,
    pub(crate) url: Option<String>,
}

impl ClientCommand {
    /// Finds a client's command in a line that may begin with a prompt, `taskset` or `ip netns exec`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let start = words.iter().position(|word| {
            let name = word.rsplit('/').next().unwrap_or(word);
            TOOLS.contains(&name)
        });
        let ours = || {
            words
                .windows(2)
                .position(|two| two[0].ends_with("millstream") && two[1] == "load")
        };
        let start = start.or_else(|| Some(ours()? + 1))?;
        let options = &words[start + 1..];
        let looks_run = options
            .iter()
            .any(|word| option(word).is_some() || word.contains("://"));
        if !looks_run {
            return None;
        }
        let mut asked = Self {
            tool: words[start].rsplit('/').next().map(String::from)?,
            ..Self::default()
        };
        let is_ab = asked.tool == "ab";
        if is_ab {
            asked.closes = Some(true);
        }
        let mut rest = options.iter();
        while let Some(word) = rest.next() {
            if word.contains("://") {
                // Only the first: copies run ab's copyright, with URLs in it, into the line of the command.
                let url = word.trim_matches(['\'', '"']);
                asked.url.get_or_insert_with(|| url.to_owned());
            } else if let Some((option, joined)) = option(word) {
                asked.take(option, joined, &mut rest, is_ab);
            }
        }
        if line.to_ascii_lowercase().contains("connection: close") {
            asked.closes = Some(true);
        }
        Some(asked)
    }

    /// One option; its value is the rest of the word or the next word.
    fn take<'a>(
        &mut self,
        option: char,
        joined: &'a str,
        rest: &mut impl Iterator<Item = &'a &'a str>,
        is_ab: bool,
    ) {
        let mut value = || {
            if joined.is_empty() {
                rest.next().copied().unwrap_or("")
            } else {
                joined
            }
        };
        match option {
            'c' => self.connections = count(value()),
            // ab's -t is a time.
            't' if !is_ab => self.threads = count(value()),
            't' | 'd' => self.seconds = seconds(value()),
            'n' => self.requests = count(value()),
            'k' if is_ab => self.closes = Some(false),
            _ => {}
        }
    }

    /// The difference as text: `-c 100 and 300`.
    pub(crate) fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut note = |what: &str, one: Option<f64>, two: Option<f64>| {
            if let (Some(one), Some(two)) = (one, two)
                && one != two
            {
                found.push(format!("{what} {one} and {two}"));
            }
        };
        note("-c", self.connections, other.connections);
        note("-t", self.threads, other.threads);
        note("-n", self.requests, other.requests);
        note("seconds", self.seconds, other.seconds);
        if let (Some(one), Some(two)) = (self.closes, other.closes)
            && one != two
        {
            found.push(String::from("kept and closed connections"));
        }
        if self.tool != other.tool {
            found.push(format!("{} and {}", self.tool, other.tool));
        }
        found
    }
}

/// `-c`, `-c100`, `--connections`, `--threads=2`.
fn option(word: &str) -> Option<(char, &str)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').unwrap_or((long, ""));
        let short = match name {
            "connections" | "clients" => 'c',
            "threads" => 't',
            "duration" => 'd',
            "requests" => 'n',
            _ => return None,
        };
        return Some((short, value));
    }
    let short = word.strip_prefix('-')?;
    let first = short.chars().next()?;
    Some((first, &short[first.len_utf8()..]))
}

/// `15000`, `15k`.
pub(crate) fn count(text: &str) -> Option<f64> {
    crate::output::quantity::Quantity::metric(text).map(|count| count.value)
}

/// `30`, `30s`, `3m`.
fn seconds(text: &str) -> Option<f64> {
    let read = crate::output::quantity::Quantity::time(text);
    read.map(|time| time.value).or_else(|| count(text))
}

/// Programs whose options are read alike.
const TOOLS: [&str; 5] = ["wrk", "wrk2", "ab", "h2load", "dpdk-httperf"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_behind_prompts_and_wrappers() {
        let asked = ClientCommand::parse(
            "# wrk --latency -H 'Connection: close' -c 16384 -d 30 -t 16 http://172.16.0.200:9090/",
        )
        .unwrap();
        assert_eq!(asked.connections, Some(16384.0));
        assert_eq!(asked.threads, Some(16.0));
        assert_eq!(asked.seconds, Some(30.0));
        assert_eq!(asked.closes, Some(true));
        assert_eq!(asked.url.as_deref(), Some("http://172.16.0.200:9090/"));
        let asked = ClientCommand::parse(
            "ip netns exec net0 taskset -c 1 ./wrk/wrk -t28 -c25000 -d3m http://10.0.1.189:8091/f",
        )
        .unwrap();
        assert_eq!(asked.connections, Some(25000.0));
        assert_eq!(asked.seconds, Some(180.0));
        let asked = ClientCommand::parse(
            "[root@dr1 www]# ab -n 800000 -c 300 http://www.example.com/logo.svg",
        )
        .unwrap();
        assert_eq!(asked.requests, Some(800_000.0));
        assert_eq!(asked.threads, None);
        assert_eq!(
            ClientCommand::parse("For this test we used wrk and ab"),
            None
        );
    }

    #[test]
    fn durations_are_read_as_wrk_and_ab_read_them() {
        let check = |line: &str, expected: Option<f64>| {
            assert_eq!(
                ClientCommand::parse(line).unwrap().seconds,
                expected,
                "{line}"
            );
        };
        check("wrk -t 1 -c 50 -d 180s http://x/", Some(180.0));
        check("millstream wrk --duration 2 http://x/", Some(2.0));
        check("millstream load --duration=1h http://x/", Some(3600.0));
        check("ab -t 30 http://x/", Some(30.0));
        check("wrk -n 800000 -c 100 ${url}", None);
        check("wrk -d soon", None);
        check("wrk -d", None);
    }

    #[test]
    fn differences_name_both_values() {
        let one = ClientCommand::parse("ab -n 800000 -c 100 http://h/").unwrap();
        let two = ClientCommand::parse("ab -k -n 800000 -c 300 http://h/").unwrap();
        assert_eq!(
            one.differences(&two),
            ["-c 100 and 300", "kept and closed connections"]
        );
        assert!(one.differences(&one).is_empty());
    }
}
