//! What a process that serves opens for itself, since no descriptor of it can come from another process: a port of DPDK.

use super::dpdk::own_port::{Opened, OwnPort};
use super::dpdk::rehearsal;
use super::{AttachError, Attached, Wire};
use crate::specification::Specification;

impl Attached {
    /// Tries in a child what this process, or one that it forks, opens later, and leaves out the attachments that the device can't
    /// carry. The calling process has one thread.
    pub(crate) fn rehearse(
        attachments: &mut Vec<Self>,
        specification: &Specification,
    ) -> Result<Vec<String>, AttachError> {
        if !attachments.iter().any(Self::is_opened_by_server) {
            return Ok(Vec::new());
        }
        let opened = rehearsal::rehearse(attachments.len(), specification)?;
        Ok(Self::keep(attachments, opened))
    }

    /// Opens it in this process, which must not fork any more.
    pub(crate) fn open(
        attachments: &mut Vec<Self>,
        specification: &Specification,
    ) -> Result<Vec<String>, AttachError> {
        let parts: Vec<&OwnPort> = attachments.iter().filter_map(Self::own_port).collect();
        if parts.is_empty() {
            return Ok(Vec::new());
        }
        let opened = OwnPort::open(&parts, specification)?;
        Ok(Self::keep(attachments, opened))
    }

    /// Whether the process that serves opens the device. Its threads use descriptors of the device that only DPDK knows, and so have to
    /// share one descriptor table.
    pub(crate) fn is_opened_by_server<D>(attached: &Attached<D>) -> bool {
        matches!(attached.wire, Wire::Dpdk(_))
    }

    fn own_port(&self) -> Option<&OwnPort> {
        match &self.wire {
            Wire::Dpdk(port) => Some(port),
            _ => None,
        }
    }

    fn keep(attachments: &mut Vec<Self>, opened: Opened) -> Vec<String> {
        attachments.truncate(opened.queue_pairs);
        opened.notices
    }
}
