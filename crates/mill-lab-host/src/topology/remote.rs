//! Client and server on other machines, reached by ssh(1) with the user's own configuration.

use super::{Testbed, TopologyError, cpus};
use crate::host::Host;
use crate::journal::errand;
use mill_lab::recipe::{Remote, Topology};

pub(super) fn raise(topology: &Topology) -> Result<Testbed, TopologyError> {
    let Some(remote) = &topology.remote else {
        return Err(TopologyError::Absent(String::from(
            "not on this machine: needs two hosts; --set topology.remote='{ server = \"user@host\", \
             client = \"user@host\", address = \"the server's address\" }'",
        )));
    };
    let server = Host::Remote(remote.server.clone());
    let client = Host::Remote(remote.client.clone());
    let server_all = cpus_of(&server, &remote.server)?;
    let client_all = cpus_of(&client, &remote.client)?;
    let (server_cpus, client_cpus) = if remote.server == remote.client {
        let split = cpus::split(&topology.cpus, &server_all)?;
        (split.server, split.client)
    } else {
        apart(topology, &server_all, &client_all)?
    };
    let named = |host, question| {
        let found = topology
            .interface
            .clone()
            .map_or_else(|| interface(host, question), Ok);
        found.map_err(TopologyError::Failed)
    };
    Ok(Testbed {
        server_interface: named(&server, &Question::Has(remote))?,
        client_interface: named(&client, &Question::Reaches(remote))?,
        server,
        clients: vec![client],
        address: remote.address.clone(),
        client_addresses: Vec::new(),
        server_cpus,
        client_cpus,
        link_mbit: topology.rate_gbit.map(|rate| rate * 1000.0),
    })
}

/// On two machines no side has to leave a CPU to the other.
fn apart(
    topology: &Topology,
    server_all: &[u32],
    client_all: &[u32],
) -> Result<(Vec<u32>, Vec<u32>), TopologyError> {
    let stated = |list: &Option<String>, all: &[u32]| {
        let cpus = match list {
            Some(list) => cpus::parse_list(list).map_err(TopologyError::Failed)?,
            None => all.to_vec(),
        };
        match cpus.iter().rfind(|cpu| !all.contains(cpu)) {
            Some(cpu) => Err(TopologyError::Absent(format!("needs {} cores", cpu + 1))),
            None => Ok(cpus),
        }
    };
    let mut server = stated(&topology.cpus.server, server_all)?;
    if let Some(count) = topology.cpus.server_count {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > server.len() {
            return Err(TopologyError::Absent(format!("needs {count} cores")));
        }
        server.drain(..server.len() - count);
    }
    Ok((server, stated(&topology.cpus.client, client_all)?))
}

/// The CPUs that a command on the remote machine may use; the reply also proves that it can be reached.
fn cpus_of(host: &Host, target: &str) -> Result<Vec<u32>, TopologyError> {
    let argv = ["grep", "Cpus_allowed_list", "/proc/self/status"];
    let text = errand::run(host, &argv, None).map_err(|error| {
        let absent = format!("not on this machine: needs ssh to {target} ({error})");
        TopologyError::Absent(absent)
    })?;
    let list = text.split_whitespace().last().unwrap_or_default();
    cpus::parse_list(list).map_err(|problem| TopologyError::Failed(format!("{target}: {problem}")))
}

/// The interface of a host that is wanted.
enum Question<'a> {
    /// The one with the server's address.
    Has(&'a Remote),
    /// The one on the route to the server's address.
    Reaches(&'a Remote),
}

fn interface(host: &Host, question: &Question<'_>) -> Result<String, String> {
    let (argv, address) = match question {
        Question::Has(remote) => (vec!["ip", "-o", "addr"], &remote.address),
        Question::Reaches(remote) => (
            vec!["ip", "-o", "route", "get", &remote.address],
            &remote.address,
        ),
    };
    let text = errand::run(host, &argv, None).map_err(|error| error.to_string())?;
    let found = match question {
        Question::Has(_) => holder(&text, address),
        Question::Reaches(_) => way(&text),
    };
    found.ok_or_else(|| format!("no interface for {address} in what {} says", argv.join(" ")))
}

/// Of `ip -o addr`: `2: eth0    inet 10.0.1.7/24 brd …`.
fn holder(text: &str, address: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let own = words.get(3)?.split('/').next()?;
        (own == address).then(|| words.get(1).map(|name| String::from(*name)))?
    })
}

/// Of `ip -o route get`: `10.0.1.7 dev eth0 src 10.0.1.8 …`.
fn way(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    words.find(|word| *word == "dev")?;
    words.next().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_lab::recipe::{Cpus, TopologyKind};

    #[test]
    fn interfaces_are_read_from_what_ip_says() {
        let text = "1: lo    inet 127.0.0.1/8 scope host lo\\ valid_lft forever\n\
                    2: eth0    inet 10.0.1.7/24 brd 10.0.1.255 scope global eth0\\ valid_lft\n";
        assert_eq!(holder(text, "10.0.1.7").as_deref(), Some("eth0"));
        assert_eq!(holder(text, "10.0.1.8"), None);
        assert_eq!(
            way("10.0.1.7 via 10.0.9.1 dev bond0 src 10.0.9.8 uid 0").as_deref(),
            Some("bond0")
        );
        assert_eq!(way("unreachable"), None);
    }

    #[test]
    fn two_machines_leave_no_cpu_to_each_other() {
        let topology = |count| Topology {
            kind: TopologyKind::Ssh,
            cpus: Cpus {
                server_count: count,
                ..Cpus::default()
            },
            ..Topology::default()
        };
        let all = [0, 1, 2, 3];
        assert_eq!(
            apart(&topology(Some(4)), &all, &[0]).unwrap(),
            (vec![0, 1, 2, 3], vec![0])
        );
        assert_eq!(
            apart(&topology(Some(1)), &all, &[0]).unwrap(),
            (vec![3], vec![0])
        );
        let refused = apart(&topology(Some(5)), &all, &[0]).unwrap_err();
        assert_eq!(
            refused,
            TopologyError::Absent(String::from("needs 5 cores"))
        );
    }

    #[test]
    fn without_hosts_the_error_says_what_to_give() {
        let topology = Topology {
            kind: TopologyKind::Ssh,
            ..Topology::default()
        };
        let error = raise(&topology).unwrap_err().to_string();
        assert!(error.contains("topology.remote"), "{error}");
    }

    #[test]
    fn a_host_that_does_not_answer_is_absent() {
        // A name that no resolver knows (RFC 6761 6.4).
        let host = String::from("nobody@millstream.invalid");
        let topology = Topology {
            kind: TopologyKind::Ssh,
            remote: Some(Remote {
                server: host.clone(),
                client: host,
                address: String::from("10.0.1.7"),
            }),
            ..Topology::default()
        };
        let error = raise(&topology).unwrap_err();
        assert!(
            matches!(&error, TopologyError::Absent(text) if text.starts_with("not on this machine: needs ssh to nobody@")),
            "{error}"
        );
    }
}
