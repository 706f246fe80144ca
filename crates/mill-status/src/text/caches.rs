//! The table of caches.

use super::columns::{Columns, Side};
use super::number::{bytes, float, percent, short};
use super::overview::entry;
use crate::document::Status;
use crate::tables::{Cache, CacheAnswers, CacheDisk};

/// Each cache in one line, and what is told of it below.
pub fn caches(status: &Status) -> String {
    let parts = status.parts.iter();
    let caches: Vec<&Cache> = parts.flat_map(|part| &part.caches).collect();
    if caches.is_empty() {
        return String::from("no caches\n");
    }
    let right = Side::Right;
    let mut table = Columns::new(&[
        ("CACHE", Side::Left),
        ("OF", Side::Left),
        ("HIT RATIO", right),
        ("HITS", right),
        ("MISSES", right),
        ("OBJECTS", right),
        ("BYTES", right),
        ("LIMIT", right),
        ("FILLING", right),
    ]);
    caches.iter().for_each(|cache| table.push(row(cache)));
    let text = table.render();
    let mut lines = text.lines();
    let mut page = format!("{}\n", lines.next().unwrap_or_default());
    for (cache, line) in caches.iter().zip(lines) {
        page.push_str(&format!("{line}\n{}", detail(cache)));
    }
    page
}

/// A cache in one line of the overview.
pub(super) fn line(cache: &Cache) -> String {
    format!(
        "{}: {} of {} requests hit ({}), {} objects in {} of {}, {} evicted",
        cache.name,
        cache.hits(),
        cache.hits() + cache.misses(),
        ratio(cache),
        cache.objects,
        bytes(cache.bytes),
        bytes(cache.bytes_max),
        cache.left_room,
    )
}

fn ratio(cache: &Cache) -> String {
    let (hits, misses) = (cache.hits(), cache.misses());
    percent(float(hits), float(hits + misses))
}

fn row(cache: &Cache) -> Vec<String> {
    vec![
        cache.name.clone(),
        cache.protocol.clone(),
        ratio(cache),
        short(cache.hits()),
        short(cache.misses()),
        short(cache.objects),
        bytes(cache.bytes),
        bytes(cache.bytes_max),
        short(cache.filling),
    ]
}

fn detail(cache: &Cache) -> String {
    let mut text = String::new();
    let mut tell = |name: &str, value: &str| entry(&mut text, &format!("  {name}"), value);
    let outcomes = [
        ("hit", cache.hit),
        ("stale", cache.stale),
        ("updating", cache.updating),
        ("revalidated", cache.revalidated),
        ("miss", cache.miss),
        ("expired", cache.expired),
        ("bypass", cache.bypass),
    ];
    let of = |(name, answers): &(&str, CacheAnswers)| {
        let (responses, bytes) = (short(answers.responses), bytes(answers.bytes));
        // What belongs together stays in one line.
        format!("{name} {responses} ({bytes})").replace(' ', "\u{a0}")
    };
    let answers: Vec<String> = outcomes
        .iter()
        .filter(|(_, answers)| answers.responses > 0)
        .map(of)
        .collect();
    let or_none = |words: Vec<String>| match words.is_empty() {
        true => String::from("none"),
        false => words.join(", "),
    };
    tell("answers", &or_none(answers));
    let fills = format!(
        "{} done, {} under way with {}; {} requests waited for another one's, {} went without",
        cache.filled,
        cache.filling,
        bytes(cache.filling_bytes),
        cache.collapsed,
        cache.passes,
    );
    tell("fills", &fills);
    let left = format!(
        "{} for want of room, {} unused, {} purged, {} replaced, {} never whole",
        cache.left_room,
        cache.left_inactive,
        cache.left_purged,
        cache.left_replaced,
        cache.left_unfinished,
    );
    tell("left", &left);
    let purges = format!(
        "{}, {} of them under way",
        cache.purges, cache.purges_pending
    );
    tell("purges", &purges);
    if let Some(disk) = &cache.disk {
        tell("disk", &on_disk(disk));
        tell("disk i/o", &disk_io(disk));
    }
    let mut largest = cache.largest.iter().map(|object| {
        let line = format!("{:>9}  {}", bytes(object.bytes), cut(&object.key));
        line.replace(' ', "\u{a0}")
    });
    if let Some(first) = largest.next() {
        tell("largest", &first);
        largest.for_each(|object| tell("", &object));
    }
    text.replace('\u{a0}', " ")
}

fn on_disk(disk: &CacheDisk) -> String {
    let limit = disk
        .bytes_max
        .map_or_else(String::new, |most| format!(" of {}", bytes(most)));
    let cold = if disk.cold { ", not all known yet" } else { "" };
    format!(
        "{} files in {}{limit}{cold}; {} left for want of room, {} unused; {} purges under way",
        disk.files,
        bytes(disk.bytes),
        disk.left_room,
        disk.left_inactive,
        disk.purges,
    )
}

fn disk_io(disk: &CacheDisk) -> String {
    format!(
        "{} written ({}), {} waiting, {} skipped; {} read back; {} failed, {} damaged",
        disk.written,
        bytes(disk.written_bytes),
        disk.queued,
        disk.skipped,
        disk.restored,
        disk.failed,
        disk.damaged,
    )
}

/// As much of a key as fits.
fn cut(key: &str) -> String {
    if key.chars().count() <= KEY_COLUMNS {
        return key.to_owned();
    }
    let cut: String = key.chars().take(KEY_COLUMNS - 1).collect();
    format!("{cut}…")
}

const KEY_COLUMNS: usize = 72;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{CacheObject, Part};

    #[test]
    fn a_cache_tells_its_hits_its_objects_and_why_they_left() {
        let answers = |responses, bytes| CacheAnswers { responses, bytes };
        let object = |key: &str, bytes| CacheObject {
            key: key.into(),
            bytes,
        };
        let busy = Cache {
            name: "one".into(),
            protocol: "proxy".into(),
            objects: 1234,
            objects_max: 8192,
            bytes: 5_000_000,
            bytes_max: 256 << 20,
            hit: answers(900, 900_000),
            stale: answers(10, 10_000),
            miss: answers(80, 81_000),
            expired: answers(10, 9_000),
            bypass: answers(7, 700),
            filling: 2,
            filling_bytes: 2048,
            filled: 90,
            collapsed: 3,
            purges: 4,
            purges_pending: 1,
            left_room: 5,
            left_purged: 6,
            largest: vec![
                object("http://app/big", 3_000_000),
                object(&"k".repeat(90), 20),
            ],
            ..Cache::default()
        };
        let unused = Cache {
            name: "two".into(),
            protocol: "fastcgi".into(),
            bytes_max: 1 << 20,
            ..Cache::default()
        };
        let text = caches(&Status {
            parts: vec![Part {
                caches: vec![busy.clone(), unused],
                ..Part::default()
            }],
            ..Status::default()
        });
        let expected = "\
CACHE  OF       HIT RATIO  HITS  MISSES  OBJECTS     BYTES     LIMIT  FILLING
one    proxy          91%   910      90   1.23 k  4.77 MiB   256 MiB        2
  answers     hit 900 (879 KiB), stale 10 (9.77 KiB), miss 80 (79.1 KiB), expired 10 (8.79 KiB),
              bypass 7 (700 B)
  fills       90 done, 2 under way with 2.00 KiB; 3 requests waited for another one's, 0 went
              without
  left        5 for want of room, 0 unused, 6 purged, 0 replaced, 0 never whole
  purges      4, 1 of them under way
  largest      2.86 MiB  http://app/big
                   20 B  kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk…
two    fastcgi          -     0       0        0       0 B  1.00 MiB        0
  answers     none
  fills       0 done, 0 under way with 0 B; 0 requests waited for another one's, 0 went without
  left        0 for want of room, 0 unused, 0 purged, 0 replaced, 0 never whole
  purges      0, 0 of them under way
";
        assert_eq!(text, expected);
        let width = text.lines().map(|line| line.chars().count()).max();
        assert!(width <= Some(100), "{width:?}");
        assert_eq!(
            line(&busy),
            "one: 910 of 1000 requests hit (91%), 1234 objects in 4.77 MiB of 256 MiB, 5 evicted"
        );
        assert_eq!(caches(&Status::default()), "no caches\n");
    }
}
