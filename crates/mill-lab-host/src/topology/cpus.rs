//! The division of CPUs between the sides.

use super::TopologyError;
use mill_lab::recipe::Cpus;

/// Each side's CPUs, ascending, at least one each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) server: Vec<u32>,
    pub(super) client: Vec<u32>,
}

/// The CPUs that this process may use.
pub(super) fn here() -> Result<Vec<u32>, TopologyError> {
    let allowed = mill_sys::affinity::allowed_cpus();
    let allowed = allowed
        .map_err(|error| TopologyError::Failed(format!("the CPUs of this process: {error}")))?;
    Ok(allowed.into_iter().map(u32::from).collect())
}

/// Divides the CPUs: as the recipe states; else the server has the top ones, half of them unless it says how many,
/// and the client the others. On a machine with one CPU both share it.
pub(super) fn split(cpus: &Cpus, available: &[u32]) -> Result<Split, TopologyError> {
    let stated = |list: &Option<String>| match list {
        Some(list) => stated(list, available).map(Some),
        None => Ok(None),
    };
    let (server, client) = (stated(&cpus.server)?, stated(&cpus.client)?);
    let wanted = cpus.server_count.map_or(0, as_count);
    if let Some(server) = server {
        if wanted > server.len() {
            return Err(needs(wanted + 1));
        }
        let client = client.unwrap_or_else(|| without(available, &server));
        return Ok(shared_if_none(server, client, available));
    }
    let free = client
        .as_ref()
        .map_or_else(|| available.to_vec(), |client| without(available, client));
    // One stays for the client, unless it has its own already.
    let for_server = free.len() - usize::from(client.is_none() && !free.is_empty());
    if wanted > for_server {
        return Err(needs(available.len() + wanted - for_server));
    }
    let count = match (wanted, &client) {
        (0, None) => (available.len() / 2).max(1),
        (0, Some(_)) => free.len(),
        (wanted, _) => wanted,
    };
    let server: Vec<u32> = free[free.len().saturating_sub(count)..].to_vec();
    let client = client.unwrap_or_else(|| without(available, &server));
    Ok(shared_if_none(server, client, available))
}

/// A CPU list as taskset(1) takes it: `0`, `0-3`, `1,3`, `0-6:2`; ascending.
pub fn parse_list(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("\"{text}\" is no CPU list: write 0, 0-3 or 1,3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (range, stride) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |word: &str| word.trim().parse::<u32>().map_err(|_| wrong());
        let (first, last, stride) = (number(first)?, number(last)?, number(stride)?);
        if last < first || stride == 0 || last > CPU_MAX {
            return Err(wrong());
        }
        let stride = usize::try_from(stride).unwrap_or(usize::MAX);
        cpus.extend((first..=last).step_by(stride));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Linux' largest NR_CPUS (arch/x86/Kconfig: 8192); keeps a mistyped range from making a list of four billion.
const CPU_MAX: u32 = 8191;

fn stated(list: &str, available: &[u32]) -> Result<Vec<u32>, TopologyError> {
    let cpus = parse_list(list).map_err(TopologyError::Failed)?;
    match cpus.iter().rfind(|cpu| !available.contains(cpu)) {
        None => Ok(cpus),
        Some(missing) if available.iter().all(|cpu| cpu < missing) => {
            Err(needs(as_count(*missing) + 1))
        }
        Some(missing) => Err(TopologyError::Absent(format!(
            "needs CPU {missing}, which this process may not use"
        ))),
    }
}

fn shared_if_none(server: Vec<u32>, client: Vec<u32>, available: &[u32]) -> Split {
    let or_all = |cpus: Vec<u32>| {
        if cpus.is_empty() {
            available.to_vec()
        } else {
            cpus
        }
    };
    Split {
        server: or_all(server),
        client: or_all(client),
    }
}

fn without(all: &[u32], others: &[u32]) -> Vec<u32> {
    let is_free = |cpu: &&u32| !others.contains(cpu);
    all.iter().filter(is_free).copied().collect()
}

fn needs(cores: usize) -> TopologyError {
    TopologyError::Absent(format!("needs {cores} cores"))
}

fn as_count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stated: (Option<&str>, Option<&str>, Option<u32>), cores: u32, expected: &str) {
        let cpus = Cpus {
            server: stated.0.map(String::from),
            client: stated.1.map(String::from),
            server_count: stated.2,
        };
        let available: Vec<u32> = (0..cores).collect();
        let answer = match split(&cpus, &available) {
            Ok(split) => format!("server {:?} client {:?}", split.server, split.client),
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected, "{stated:?} of {cores}");
    }

    #[test]
    fn the_server_has_the_top_cores_and_the_client_the_others() {
        check((None, None, None), 1, "server [0] client [0]");
        check((None, None, None), 2, "server [1] client [0]");
        check((None, None, None), 3, "server [2] client [0, 1]");
        check((None, None, None), 4, "server [2, 3] client [0, 1]");
        check((None, None, Some(1)), 4, "server [3] client [0, 1, 2]");
        check((None, None, Some(3)), 4, "server [1, 2, 3] client [0]");
    }

    #[test]
    fn a_point_that_needs_more_cores_says_how_many() {
        check((None, None, Some(4)), 4, "needs 5 cores");
        check((None, None, Some(28)), 2, "needs 29 cores");
        check((None, None, Some(1)), 1, "needs 2 cores");
        check((Some("0-3"), None, None), 2, "needs 4 cores");
        check((Some("1"), None, Some(2)), 4, "needs 3 cores");
        check((None, Some("0"), Some(2)), 2, "needs 3 cores");
    }

    #[test]
    fn what_is_stated_is_done() {
        check((Some("0"), Some("1"), None), 2, "server [0] client [1]");
        check((Some("2"), None, None), 4, "server [2] client [0, 1, 3]");
        check((None, Some("3"), None), 4, "server [0, 1, 2] client [3]");
        check((None, Some("3"), Some(2)), 4, "server [1, 2] client [3]");
        check(
            (Some("0-1"), Some("0-1"), None),
            2,
            "server [0, 1] client [0, 1]",
        );
    }

    #[test]
    fn lists_are_read_as_taskset_reads_them() {
        for (text, expected) in [
            ("0", vec![0]),
            ("0-3", vec![0, 1, 2, 3]),
            ("3,1", vec![1, 3]),
            ("0-6:2", vec![0, 2, 4, 6]),
            ("1,0-1", vec![0, 1]),
        ] {
            assert_eq!(parse_list(text).unwrap(), expected, "{text}");
        }
        for text in ["", "a", "3-1", "0-", "1,,2", "0-4000000000", "0-3:0"] {
            assert!(parse_list(text).is_err(), "{text}");
        }
    }
}
