//! Processes that are killed while they keep answers on disk: whatever is served later is whole, right, and not older than
//! a purge that was done.
//!
//! `MILLSTREAM_KILLS=200` kills as often; the seed of each run is printed, and `MILLSTREAM_SEED` repeats it.

use crate::client::{Answer, Client, get};
use crate::site::{Site, free_address, send};
use mill_sys::process::Pid;
use mill_sys::signal::Signal;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const KEYS: u64 = 40;

/// The version of each key at its origin, and the least one that may still be served.
struct Truth {
    versions: Vec<AtomicU64>,
    floors: Vec<AtomicU64>,
}

impl Truth {
    fn new() -> Arc<Self> {
        let zeros = || (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self {
            versions: zeros(),
            floors: zeros(),
        })
    }
}

/// The content of a key in one version: each line tells both, and the length depends on both.
fn content_of(key: u64, version: u64) -> Vec<u8> {
    let line = format!("key {key} version {version}\n");
    let lines = 1 + (key * key * 37 + version * 11) % 6000;
    line.repeat(usize::try_from(lines).unwrap()).into_bytes()
}

/// Key and version, if each byte is theirs.
fn check(answer: &Answer, key: u64) -> Result<u64, String> {
    let text = String::from_utf8_lossy(&answer.content);
    let mut words = text.split_whitespace().skip(3);
    let version = words.next().and_then(|word| word.parse().ok());
    let version = version.ok_or_else(|| format!("no version: {:.80}", text))?;
    match answer.content == content_of(key, version) {
        true => Ok(version),
        false => Err(format!("key {key}, version {version}: other bytes")),
    }
}

fn start_origin(truth: &Arc<Truth>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let truth = Arc::clone(truth);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let truth = Arc::clone(&truth);
            thread::spawn(move || answer(&stream, &truth));
        }
    });
    address
}

fn answer(stream: &TcpStream, truth: &Truth) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
    let target = head.split(' ').nth(1)?;
    let key: u64 = target.rsplit('/').next()?.parse().ok()?;
    let version = truth.versions.get(usize::try_from(key).ok()?)?.load(SeqCst);
    let content = content_of(key, version);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nSurrogate-Key: tag{}\r\nConnection: close\r\n\r\n",
        content.len(),
        key % 4,
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes()).ok()?;
    // In pieces, so that a kill may come between two.
    for piece in content.chunks(16 * 1024) {
        stream.write_all(piece).ok()?;
    }
    Some(())
}

/// A plain congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Asks for keys, and purges some, until it is told to stop. Connections that a kill has ended are no failure.
fn load(front: SocketAddr, truth: &Truth, seed: u64, stop: &AtomicBool) -> Result<u64, String> {
    let mut random = Random(seed);
    let mut right = 0;
    while !stop.load(SeqCst) {
        let Ok(mut client) = Client::connect(front) else {
            continue;
        };
        while !stop.load(SeqCst) {
            let key = random.below(KEYS);
            if random.below(20) == 0 {
                purge(front, truth, key, random.below(3));
                continue;
            }
            let floor = truth.floors[usize::try_from(key).unwrap()].load(SeqCst);
            let Ok(answer) = client.get(&format!("/k/{key}")) else {
                break;
            };
            if answer.status != 200 {
                continue;
            }
            let version = check(&answer, key)?;
            if version < floor {
                return Err(format!(
                    "key {key}: version {version} behind a purge of {floor}"
                ));
            }
            right += 1;
        }
    }
    Ok(right)
}

/// A new version at the origin, and a purge by key, tag or prefix: once it is done, no older one may be served.
fn purge(front: SocketAddr, truth: &Truth, key: u64, kind: u64) {
    let index = usize::try_from(key).unwrap();
    let version = truth.versions[index].fetch_add(1, SeqCst) + 1;
    let purged = match kind {
        0 => get(front, &format!("/k/{key}?purge=1")),
        1 => get(front, "/k/*?purge=1"),
        _ => Client::connect(front).and_then(|mut client| {
            let tag = key % 4;
            client.send(
                format!("GET /x?purge=1 HTTP/1.1\r\nHost: test\r\nSurrogate-Key: tag{tag}\r\n\r\n")
                    .as_bytes(),
            )?;
            client.answer()
        }),
    };
    if purged.is_ok_and(|answer| answer.status == 204) {
        truth.floors[index].fetch_max(version, SeqCst);
    }
}

/// How many bytes files take in a folder.
fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_of(&entry.path()),
        _ => entry.metadata().map_or(0, |metadata| metadata.len()),
    });
    sizes.sum()
}

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

#[test]
fn killed_at_any_moment_a_cache_serves_nothing_but_whole_and_right_answers() {
    let kills = number("MILLSTREAM_KILLS", 6);
    let nanos = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    let seed = number("MILLSTREAM_SEED", nanos.into());
    println!("seed {seed}");
    let mut random = Random(seed);
    let truth = Truth::new();
    let origin = start_origin(&truth);
    let (site, front) = (Site::new(), free_address());
    let folder = site.path("cache");
    site.configure(
        "worker_processes 2;",
        &format!(
            "proxy_cache_path {} levels=1:2 keys_zone=site:1m memory=400k max_size=3m inactive=1h;
             server {{ listen {front} reuseport; access_log off; location = /index.html {{ }}
                       location / {{ proxy_pass http://{origin}; proxy_cache site; proxy_cache_valid 200 1h;
                                     proxy_cache_key $uri; proxy_cache_purge $arg_purge; cache_tags Surrogate-Key;
                                     proxy_cache_lock on; }} }}",
            folder.display()
        ),
    );
    let mut right = 0;
    for _ in 0..kills {
        let master = site.start();
        site.wait_until_served(front);
        let lived = Duration::from_millis(20 + random.below(400));
        right += live(master, &site, front, &truth, lived, &mut random);
    }
    let master = site.start();
    site.wait_until_served(front);
    for key in 0..KEYS {
        let answer = get(front, &format!("/k/{key}")).unwrap();
        let version = check(&answer, key).unwrap();
        assert!(version >= truth.floors[usize::try_from(key).unwrap()].load(SeqCst));
    }
    send(master, Signal::Quit);
    let bytes = bytes_of(&folder);
    assert!(
        right > 0 && bytes > 0 && bytes <= 3 << 20,
        "{right} answers, {bytes} bytes"
    );
    assert!(
        !site.error_log().contains("panicked"),
        "{}",
        site.error_log()
    );
    println!("{kills} kills, {right} answers, {bytes} bytes on disk");
}

/// Load for this time, then the end of both processes.
fn live(
    master: Pid,
    site: &Site,
    front: SocketAddr,
    truth: &Arc<Truth>,
    lived: Duration,
    random: &mut Random,
) -> u64 {
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (truth, stop) = (Arc::clone(truth), Arc::clone(&stop));
            let seed = random.below(u64::MAX);
            thread::spawn(move || load(front, &truth, seed, &stop))
        })
        .collect();
    let worker = site.worker(master, &[]);
    // Nothing is ever sent: it is waited for the time alone.
    let (_sender, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(lived);
    // The master first: it would start another worker process.
    send(master, Signal::Kill);
    send(worker, Signal::Kill);
    stop.store(true, SeqCst);
    let counts = clients.into_iter().map(|client| client.join().unwrap());
    let counted: Result<Vec<u64>, String> = counts.collect();
    counted
        .unwrap_or_else(|wrong| panic!("{wrong}"))
        .iter()
        .sum()
}
