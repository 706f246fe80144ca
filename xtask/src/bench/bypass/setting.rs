//! Where blocks are measured, and with what.

use std::path::PathBuf;

use super::topology::Topology;
use crate::bench::lab::Lab;

#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub(super) lab: &'a Lab,
    pub(super) topology: &'a Topology,
    pub(super) programs: &'a Programs,
    /// The length of a block.
    pub(super) seconds: u32,
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) nginx: PathBuf,
    pub(super) wrk: PathBuf,
    pub(super) millstream: PathBuf,
    /// This binary, optimised.
    pub(super) xtask: PathBuf,
}

impl Setting<'_> {
    /// Where two processes find each other.
    pub(super) fn memif_socket(&self) -> PathBuf {
        self.lab.file("memif.sock")
    }

    /// What `millstream load` writes.
    pub(super) fn load_json(&self) -> PathBuf {
        self.lab.file("load.json")
    }

    /// The script with which wrk tells figures unrounded.
    pub(super) fn wrk_script(&self) -> PathBuf {
        self.lab.file("done.lua")
    }
}
