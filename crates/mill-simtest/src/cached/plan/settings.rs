//! The cache's zones, and the directives of its location.

use mill_sim::random::Random;

/// The zones: what they hold, and whether there are two.
#[derive(Clone, Debug)]
pub struct ZonePlan {
    /// Answers have to make room for others.
    pub is_small: bool,
    pub has_two: bool,
    /// Seconds (`inactive`).
    pub inactive: u64,
}

impl ZonePlan {
    pub(super) fn draw(random: &mut Random) -> Self {
        Self {
            is_small: random.happens(400_000),
            has_two: random.happens(300_000),
            inactive: random.one_of(&[600, 600, 600, 3]),
        }
    }

    /// Whether something may be gone that nothing has removed.
    pub const fn forgets(&self) -> bool {
        self.is_small || self.inactive < 600
    }

    /// The zone of a target.
    pub fn of(&self, target: &str) -> usize {
        usize::from(self.has_two && target.starts_with("/b"))
    }

    /// The directives that define the zones.
    pub(super) fn paths(&self, disk: &DiskPlan) -> String {
        let memory = if self.is_small { "64k" } else { "16m" };
        let path = |name: &str| {
            format!(
                "proxy_cache_path /{name} keys_zone={name}:64k memory={memory} inactive={}s {};",
                self.inactive,
                disk.parameters()
            )
        };
        match self.has_two {
            true => path("one") + &path("two") + "map $uri $zone { default one; ~^/b two; }",
            false => path("one"),
        }
    }

    /// The directive that names the zone of a request.
    pub(super) const fn choice(&self) -> &'static str {
        match self.has_two {
            true => "proxy_cache $zone;",
            false => "proxy_cache one;",
        }
    }
}

/// The disk below the zones' memory, and what befalls it.
#[derive(Clone, Debug)]
pub struct DiskPlan {
    pub is_used: bool,
    /// Bytes of files at most (`max_size`).
    pub bytes_max: Option<u64>,
    /// How long each call takes that may wait for it.
    pub latency_ms: u64,
    /// From time to time it is full.
    pub fills_up: bool,
    /// From time to time a file has a flipped bit, is cut short, or is gone.
    pub damages: bool,
}

impl DiskPlan {
    pub(super) fn draw(random: &mut Random) -> Self {
        Self {
            is_used: random.happens(800_000),
            bytes_max: random.one_of(&[None, None, Some(200 << 10), Some(20 << 10)]),
            latency_ms: random.one_of(&[0, 0, 1, 30]),
            fills_up: random.happens(300_000),
            damages: random.happens(400_000),
        }
    }

    /// The parameters of the zones' directives.
    pub(super) fn parameters(&self) -> String {
        match (self.is_used, self.bytes_max) {
            (false, _) => String::from("disk=off"),
            (true, None) => String::from("levels=1"),
            (true, Some(bytes)) => format!("levels=1 max_size={bytes}"),
        }
    }

    /// Whether anything is to happen to it while the world goes on.
    pub const fn is_troubled(&self) -> bool {
        self.is_used && (self.fills_up || self.damages)
    }
}

/// The directives that say how answers are kept and used.
#[derive(Clone, Debug)]
pub struct ServingPlan {
    pub follows_rfc: bool,
    pub has_lock: bool,
    /// Requests do not wait for ever.
    pub is_impatient: bool,
    /// The parameters of `proxy_cache_use_stale`; none is `off`.
    pub use_stale: &'static str,
    pub background_update: bool,
    pub revalidates: bool,
    pub min_uses: u32,
    /// Seconds of `proxy_cache_valid`, for 200 and for all others; 0 is none.
    pub valid: (u64, u64),
}

impl ServingPlan {
    pub(super) fn draw(random: &mut Random) -> Self {
        Self {
            follows_rfc: random.happens(500_000),
            has_lock: random.happens(600_000),
            is_impatient: random.happens(300_000),
            use_stale: random.one_of(&[
                "",
                "",
                "updating",
                "error timeout http_500 http_503",
                "error timeout updating http_503",
            ]),
            background_update: random.happens(500_000),
            revalidates: random.happens(500_000),
            min_uses: random.one_of(&[1, 1, 1, 2, 3]),
            valid: random.one_of(&[(0, 0), (4, 0), (6, 2)]),
        }
    }

    /// Whether requests for one answer wait for one another.
    pub const fn waits(&self) -> bool {
        self.has_lock || self.follows_rfc
    }

    /// `use_stale` has this parameter.
    pub fn uses_stale(&self, parameter: &str) -> bool {
        self.use_stale.split(' ').any(|word| word == parameter)
    }

    /// Seconds that the configuration gives to an answer that says nothing; 0 is none.
    pub const fn configured(&self, status: u16) -> u64 {
        match status {
            200 => self.valid.0,
            _ => self.valid.1,
        }
    }

    pub(super) fn directives(&self) -> String {
        let mut text = String::new();
        if self.follows_rfc {
            text += "cache_rules rfc9111;";
        }
        if self.has_lock {
            text += "proxy_cache_lock on;";
        }
        text += match self.is_impatient {
            true => "proxy_cache_lock_timeout 2s; proxy_cache_lock_age 3s;",
            false => "proxy_cache_lock_timeout 1000s; proxy_cache_lock_age 1000s;",
        };
        if !self.use_stale.is_empty() {
            text += &format!("proxy_cache_use_stale {};", self.use_stale);
        }
        if self.background_update {
            text += "proxy_cache_background_update on;";
        }
        if self.revalidates {
            text += "proxy_cache_revalidate on;";
        }
        if self.min_uses > 1 {
            text += &format!("proxy_cache_min_uses {};", self.min_uses);
        }
        for (status, seconds) in [("200", self.valid.0), ("any", self.valid.1)] {
            if seconds > 0 {
                text += &format!("proxy_cache_valid {status} {seconds}s;");
            }
        }
        text
    }
}
