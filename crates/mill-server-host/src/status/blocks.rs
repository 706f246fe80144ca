//! The table of blocked addresses. All workers share them: no worker thread is asked.

use mill_runtime::time::Instant;
use mill_server::site::Site;
use mill_status::tables::Block;

/// Each blocked address.
pub(crate) fn rows(site: &Site, now: Instant) -> Vec<Block> {
    let all = site.frang.iter().flat_map(|frang| frang.blocks.all(now));
    let rows = all.map(|block| Block {
        address: block.address.to_string(),
        reason: String::from(block.why),
        since_s: now.since(block.since).as_secs(),
        left_s: (block.until != Instant::FAR).then(|| block.until.since(now).as_secs()),
    });
    rows.collect()
}
