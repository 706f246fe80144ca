//! What the seed of a world with a cache decides.

/// What origins have.
pub mod object;
/// What clients ask.
pub mod request;
/// The cache's zones, and the directives of its location.
pub mod settings;

use mill_runtime::time::Duration;
use mill_sim::link::{Link, Segments};
use mill_sim::random::Random;
use object::ObjectPlan;
use request::{Ask, TalkPlan};
use settings::{DiskPlan, ServingPlan, ZonePlan};
use std::fmt;

/// A world with a cache before it begins.
#[derive(Clone, Debug)]
pub struct CachedPlan {
    pub seed: u64,
    pub workers: usize,
    pub origins: usize,
    pub zone: ZonePlan,
    pub disk: DiskPlan,
    pub serving: ServingPlan,
    pub objects: Vec<ObjectPlan>,
    /// By client.
    pub talks: Vec<Vec<TalkPlan>>,
    /// How many of a million requests origins do not answer as they should.
    pub faults_per_million: u32,
    /// The way between all parties.
    pub link: Link,
    /// Directives that the judge does not know of, by which the server does what it must not: a test of the judge.
    pub slip: &'static str,
}

impl CachedPlan {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed ^ CACHED);
        let serving = ServingPlan::draw(&mut random);
        let count = 1 + index(random.up_to(5));
        let objects: Vec<_> = (0..count)
            .map(|index| ObjectPlan::draw(index, &mut random))
            .collect();
        let clients = 2 + index(random.up_to(5));
        let talks: Vec<_> = (0..clients)
            .map(|client| talks(client, &objects, &serving, &mut random))
            .collect();
        Self {
            seed,
            workers: 1 + index(random.up_to(2)),
            origins: 1 + index(random.up_to(1)),
            zone: ZonePlan::draw(&mut random),
            talks,
            serving,
            objects,
            faults_per_million: random.one_of(&[0, 0, 50_000, 300_000]),
            link: link(&mut random),
            // Drawn last: what was drawn before there were disks is as it was.
            disk: DiskPlan::draw(&mut random),
            slip: "",
        }
    }

    /// Where an origin listens.
    pub fn origin(&self, origin: usize) -> String {
        format!("10.0.1.{}:80", origin + 1)
    }

    pub fn requests(&self) -> impl Iterator<Item = &Ask> {
        let talks = self.talks.iter().flatten();
        talks.flat_map(|talk| talk.steps.iter().map(|(_, ask)| ask))
    }

    /// What kinds of worlds this is one of, for counting.
    pub fn kinds(&self) -> Vec<&'static str> {
        let serving = &self.serving;
        let has_purges = self.requests().any(|ask| matches!(ask, Ask::Purge(_)));
        let kinds = [
            (serving.follows_rfc, "RFC 9111"),
            (self.workers > 1, "several workers"),
            (self.zone.is_small, "small zones"),
            (self.zone.has_two, "two zones"),
            (serving.waits(), "requests that wait for one another"),
            (!serving.use_stale.is_empty(), "stale answers"),
            (serving.revalidates, "validation"),
            (self.objects.iter().any(|it| it.varies), "Vary"),
            (has_purges, "purges"),
            (self.faults_per_million > 0, "faults of origins"),
            (self.disk.is_used, "disks"),
            (self.disk.is_troubled(), "faults of disks"),
        ];
        let holding = kinds.into_iter().filter(|(holds, _)| *holds);
        holding.map(|(_, name)| name).collect()
    }

    /// The configuration of the server.
    pub fn configuration(&self) -> String {
        let servers =
            (0..self.origins).map(|it| format!("server {} max_fails=0;", self.origin(it)));
        format!(
            "error_log /error.log info; events {{ }} http {{ access_log off;
             client_header_timeout 3000s; send_timeout 3000s; keepalive_timeout 3000s;
             map $request_method $purges {{ default 0; PURGE 1; }}
             {}
             upstream app {{ {} keepalive 4; }}
             server {{ listen {LISTEN} reuseport; cache_tags Surrogate-Key;
               add_header X-Cache $upstream_cache_status always; proxy_temp_path /temp;
               proxy_http_version 1.1; proxy_set_header Connection '';
               location / {{ proxy_pass http://app; proxy_cache_purge $purges;
                 proxy_cache_bypass $http_x_bypass; proxy_read_timeout 20s; {} {} {} }} }} }}",
            self.zone.paths(&self.disk),
            servers.collect::<String>(),
            self.zone.choice(),
            self.serving.directives(),
            self.slip,
        )
    }
}

fn talks(
    client: usize,
    objects: &[ObjectPlan],
    serving: &ServingPlan,
    random: &mut Random,
) -> Vec<TalkPlan> {
    let count = 1 + random.up_to(3);
    let talks = (0..count).map(|_| TalkPlan {
        // Many begin at once.
        at: Duration::from_secs(random.one_of(&[0, 0, 1, 5, 10, 11, 20, 35]))
            + Duration::from_millis(random.up_to(80)),
        steps: (0..1 + random.up_to(7))
            .map(|_| {
                let gap = Duration::from_millis(random.one_of(&[0, 0, 10, 900, 2_000, 7_000]));
                (gap, Ask::draw(client, objects, serving, random))
            })
            .collect(),
    });
    talks.collect()
}

fn link(random: &mut Random) -> Link {
    Link {
        delay: Duration::from_millis(random.one_of(&[0, 1, 10, 60])),
        jitter: Duration::from_millis(random.one_of(&[0, 0, 3, 30])),
        bytes_per_second: random.one_of(&[None, None, Some(200_000)]),
        window_bytes: random.one_of(&[65_536, 65_536, 4_000]),
        segments: random.one_of(&[
            Segments::UpTo(1_460),
            Segments::UpTo(9_000),
            Segments::Random(1_460),
        ]),
    }
}

/// A drawn number that its bound keeps small.
pub(super) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl fmt::Display for CachedPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, workers, .. } = self;
        writeln!(out, "seed {seed}: a cache of {workers} workers")?;
        writeln!(out, "{}", self.configuration())?;
        writeln!(out, "faults per million: {}", self.faults_per_million)?;
        writeln!(out, "{:?}", self.link)?;
        writeln!(out, "{:?}", self.disk)?;
        for object in &self.objects {
            writeln!(out, "{object:?}")?;
        }
        for (client, talks) in self.talks.iter().enumerate() {
            for talk in talks {
                writeln!(out, "client {client} at {:?}", talk.at)?;
                for (gap, ask) in &talk.steps {
                    writeln!(out, "  after {gap:?}: {ask:?}")?;
                }
            }
        }
        Ok(())
    }
}

/// Where the server listens.
pub const LISTEN: &str = "10.0.0.1:80";

/// Mixed into the seed, so that these worlds are not drawn as the others are.
const CACHED: u64 = 0xcac4_e000_0000_0003;
