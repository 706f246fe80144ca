//! Looks that cost: each in a pass of its own, under the same load, and what it counted never changes a rate.

use crate::topology::Ground;
use mill_lab::recipe::Probe;
use mill_lab::record::{CommandLine, Figures};
use std::path::PathBuf;

/// What a probe may look at.
#[derive(Clone, Debug)]
pub struct Scene {
    pub ground: Ground,
    pub server: Option<u32>,
    pub clients: Vec<u32>,
    pub port: u16,
    /// Where artefacts go.
    pub folder: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looked {
    pub figures: Figures,
    /// Metric and reason.
    pub absent: Vec<(String, String)>,
    /// Files in the folder.
    pub artefacts: Vec<String>,
    pub commands: Vec<CommandLine>,
    pub notes: Vec<String>,
}

/// Looks for `probe.seconds`; the load is running already.
pub fn look(probe: &Probe, scene: &Scene) -> Looked {
    let _ = (probe, scene);
    Looked::default()
}
