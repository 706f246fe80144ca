//! One generation of the configuration, shared by all workers.

use crate::api::baselines::Baselines;
use crate::cache::CacheZones;
use crate::challenge::ChallengeSecret;
use crate::frang::Frang;
use crate::limits::LimitZones;
use crate::resolvers::ResolverZones;
use crate::tls::TlsSite;
use crate::upstreams::Upstreams;
use crate::variables::mention::Mentions;
use crate::zones::Zones;
use mill_config::config::Config;
use mill_tls::tickets::TicketSecret;
use std::sync::Arc;

/// A configuration that is, or was, in force. A request holds it by `Arc` until it is answered.
#[derive(Debug)]
pub struct Site {
    pub config: Config,
    /// Counts the configurations since the start; 1 is the first.
    pub generation: u64,
    /// Variables whose values are costly.
    pub mentions: Mentions,
    /// Groups of upstream servers.
    pub upstreams: Upstreams,
    /// Those of `stream`.
    pub stream_upstreams: Upstreams,
    /// What `limit_req` and `limit_conn` count.
    pub limits: LimitZones,
    /// What handshakes of TLS are answered with.
    pub tls: TlsSite,
    /// What resolvers have counted.
    pub resolver_zones: ResolverZones,
    /// Where the API's statistics of connections and requests begin.
    pub(crate) baselines: Arc<Baselines>,
    /// What was counted of servers and locations.
    pub zones: Zones,
    /// Limits of clients, if there are any.
    pub frang: Option<Arc<Frang>>,
    /// What cookies of `challenge_cookie` are signed with.
    pub(crate) challenge_secret: ChallengeSecret,
    /// Answers of servers that are kept.
    pub caches: CacheZones,
}

impl Site {
    /// The first configuration of a process.
    pub fn new(config: Config, generation: u64) -> Self {
        Self::following(None, config, generation, None)
    }

    /// What is known of upstream servers goes on from the configuration that was in force before. Of the first one TLS
    /// tickets are made from `secret`, which other processes may have too.
    pub fn following(
        previous: Option<&Self>,
        config: Config,
        generation: u64,
        secret: Option<&TicketSecret>,
    ) -> Self {
        let mentions = Mentions::of(&config);
        let known = previous.map(|previous| &previous.upstreams);
        let resolver_zones = previous.map(|previous| &previous.resolver_zones);
        let zones = previous.map(|previous| &previous.zones);
        // The process which reads the configuration has tried this before, and refused it (`TlsSite::following`).
        let tls = TlsSite::following(previous.map(|previous| &previous.tls), &config, secret);
        Self {
            tls: tls.unwrap_or_default(),
            upstreams: Upstreams::new(&config, known),
            stream_upstreams: Upstreams::of_stream(
                &config,
                previous.map(|previous| &previous.stream_upstreams),
            ),
            limits: LimitZones::following(previous.map(|previous| &previous.limits), &config),
            resolver_zones: ResolverZones::new(&config, resolver_zones),
            baselines: previous
                .map_or_else(Arc::default, |previous| Arc::clone(&previous.baselines)),
            zones: Zones::new(&config, zones),
            frang: Frang::following(
                previous.and_then(|previous| previous.frang.as_ref()),
                &config,
            ),
            challenge_secret: previous.map_or_else(
                || ChallengeSecret::new(secret),
                |previous| previous.challenge_secret.clone(),
            ),
            caches: CacheZones::following(previous.map(|previous| &previous.caches), &config),
            config,
            generation,
            mentions,
        }
    }
}
