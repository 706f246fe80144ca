//! What stays in place between trials: topology, tuning, content. It is rebuilt only when a trial needs another.

use crate::content;
use crate::host::Host;
use crate::host_folder::HostFolder;
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::limits;
use crate::needs;
use crate::own_stack;
use crate::system::Trouble;
use crate::topology::{self, Testbed, TopologyError};
use crate::tune;
use mill_lab::recipe::{Content, Setup, Topology, TopologyKind, Tune};
use mill_lab::record::TunedKey;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A testbed with tuning and content.
#[derive(Debug)]
pub struct PreparedTestbed {
    pub testbed: Testbed,
    pub tuned: Vec<TunedKey>,
    /// What `prlimit` gives to servers and clients.
    pub nofile: Option<u64>,
    /// The folder on the server's host: content in `root`, and one folder for each system.
    pub place: HostFolder,
    /// A file there, for wrk.
    pub wrk_script: PathBuf,
    made_of: (Topology, Tune, BTreeMap<String, Content>),
    /// The journal's position before it.
    mark: usize,
}

impl PreparedTestbed {
    /// Makes everything that the setup needs; the journal undoes it in reverse order.
    pub fn make(
        setup: &Setup,
        scratch: &Path,
        journal: &mut Journal,
        interrupt: &Interrupt,
    ) -> Result<Self, Trouble> {
        let mark = journal.mark();
        match Self::raise(setup, scratch, journal, (mark, interrupt)) {
            Ok(prepared_testbed) => Ok(prepared_testbed),
            Err(trouble) => {
                journal.undo_to(mark);
                Err(trouble)
            }
        }
    }

    fn raise(
        setup: &Setup,
        scratch: &Path,
        journal: &mut Journal,
        (mark, interrupt): (usize, &Interrupt),
    ) -> Result<Self, Trouble> {
        if let Some(name) = WRAPPERS
            .into_iter()
            .find(|name| needs::program(name).is_none())
        {
            return Err(Trouble::Absent(format!(
                "not on this machine: needs {name} (util-linux)"
            )));
        }
        let raised = topology::raise(&setup.topology, journal, interrupt);
        let testbed = raised.map_err(|error| match error {
            TopologyError::Absent(reason) => Trouble::Absent(reason),
            TopologyError::Failed(reason) => Trouble::Failed(reason),
        })?;
        let tuning = own_stack::tuning(setup);
        let mut tuned = tune::apply(&tuning, &testbed, journal);
        tuned.extend(not_made(&setup.topology));
        let failed = |what: &dyn std::fmt::Display| {
            Trouble::Failed(format!("{}: {what}", scratch.display()))
        };
        let place =
            HostFolder::make(&testbed.server, scratch, journal).map_err(|error| failed(&error))?;
        if let Some(size) = &tuning.tmpfs {
            tuned.push(
                content_in_memory(size, &place, &testbed, journal)
                    .map_err(|error| failed(&error))?,
            );
        }
        let files = tuning.limits.nofile;
        let files = files.and_then(|wanted| limits::open_files(&testbed.server, wanted));
        tuned.extend(files.iter().map(|files| files.tuned.clone()));
        content::write(&setup.content, &place).map_err(|error| failed(&error))?;
        let wrk_script = place
            .write("figures.lua", mill_lab::output::WRK_SCRIPT.as_bytes())
            .map_err(|error| failed(&error))?;
        Ok(Self {
            testbed,
            tuned,
            nofile: files.map(|files| files.limit),
            place,
            wrk_script,
            made_of: (setup.topology.clone(), tuning, setup.content.clone()),
            mark,
        })
    }

    /// Whether a trial can run on it without a change.
    pub fn fits(&self, setup: &Setup) -> bool {
        let (topology, tune, content) = &self.made_of;
        *topology == setup.topology
            && *tune == own_stack::tuning(setup)
            && *content == setup.content
    }

    /// Removes everything; returns messages on what could not be restored.
    pub fn undo(self, journal: &mut Journal) -> Vec<String> {
        journal.undo_to(self.mark)
    }
}

/// Settings of a link that this kind of topology does not apply: reported, because the figures are of the link as it
/// is.
fn not_made(topology: &Topology) -> Vec<TunedKey> {
    let queues = match topology.kind {
        TopologyKind::Loopback | TopologyKind::Ssh => topology.queues,
        // Guests have as many as was asked for.
        TopologyKind::Vm => None,
        TopologyKind::Veth | TopologyKind::Macvlan => return Vec::new(),
    };
    let asked = [
        ("queues", queues.map(|count| count.to_string())),
        ("rate_gbit", topology.rate_gbit.map(|rate| rate.to_string())),
        ("mtu", topology.mtu.map(|bytes| bytes.to_string())),
    ];
    let said = asked.into_iter().filter_map(|(key, wanted)| {
        Some(TunedKey {
            key: format!("topology.{key}"),
            before: None,
            wanted: wanted?,
            problem: Some(String::from("absent: the lab does not make this link")),
        })
    });
    said.collect()
}

/// The wrapper of every command, on any host.
const WRAPPERS: [&str; 2] = ["taskset", "prlimit"];

/// The document root on a tmpfs of its own; on a remote machine it is in that machine's /tmp.
fn content_in_memory(
    size: &str,
    place: &HostFolder,
    testbed: &Testbed,
    journal: &mut Journal,
) -> std::io::Result<TunedKey> {
    let root = place.folder().join("root");
    if let Host::Remote(target) = &testbed.server {
        return Ok(TunedKey {
            key: format!("tmpfs on {}", root.display()),
            before: None,
            wanted: String::from(size),
            problem: Some(format!(
                "not mounted on {target}: the content lies on its disk"
            )),
        });
    }
    std::fs::create_dir_all(&root)?;
    Ok(tune::tmpfs(size, &root, journal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_loopback_does_not_have_is_reported() {
        let mut topology = Topology {
            rate_gbit: Some(10.0),
            ..Topology::default()
        };
        let said = not_made(&topology);
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].key, "topology.rate_gbit");
        topology.kind = TopologyKind::Veth;
        assert_eq!(not_made(&topology), []);
    }
}
