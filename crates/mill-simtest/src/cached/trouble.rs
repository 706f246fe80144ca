//! What befalls the disk below a cache while clients ask: it is full for a while, and files change, end early or vanish.

use super::plan::CachedPlan;
use super::plan::settings::DiskPlan;
use mill_runtime::time::Duration;
use mill_sim::files::SimFiles;
use mill_sim::random::Random;

/// The trouble of one world.
pub(super) struct Trouble {
    disk: DiskPlan,
    random: Random,
}

impl Trouble {
    pub(super) fn new(plan: &CachedPlan) -> Self {
        Self {
            disk: plan.disk.clone(),
            random: Random::new(plan.seed ^ TROUBLE),
        }
    }

    /// How long the world goes on before the next look.
    pub(super) fn interval(&self) -> Duration {
        match self.disk.is_troubled() {
            true => Duration::from_millis(1_300),
            false => Duration::from_secs(10),
        }
    }

    /// What happens now, if anything does.
    pub(super) fn happen(&mut self, files: &SimFiles) {
        if !self.disk.is_troubled() {
            return;
        }
        if self.disk.fills_up {
            let most = self.random.one_of(&[0, 30_000, usize::MAX]);
            files.set_disk_bytes_max(most);
        }
        if self.disk.damages {
            for path in paths(files) {
                if self.random.happens(300_000) {
                    self.damage(&path, files);
                }
            }
        }
    }

    fn damage(&mut self, path: &str, files: &SimFiles) {
        let mut bytes = files.read(path);
        let last = u64::try_from(bytes.len()).unwrap_or(0).saturating_sub(1);
        let at = usize::try_from(self.random.up_to(last)).unwrap_or(0);
        match self.random.up_to(2) {
            0 => files.remove(path),
            1 => files.set_len(path, at),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << self.random.up_to(7);
                }
                files.write(path, bytes);
            }
        }
    }
}

/// The files of objects in the folders of both zones, in an order that does not change.
fn paths(files: &SimFiles) -> Vec<String> {
    let folders = ["/one", "/two"].into_iter().flat_map(|zone| {
        let levels = files.names(zone).into_iter();
        let levels = levels.filter(|name| name.len() == 1);
        levels.map(move |level| format!("{zone}/{level}"))
    });
    let paths = folders.flat_map(|folder| {
        let names = files.names(&folder).into_iter();
        names.map(move |name| format!("{folder}/{name}"))
    });
    paths.collect()
}

/// Mixed into the seed for what befalls the disk.
const TROUBLE: u64 = 0xd15c_0000_0000_0004;
