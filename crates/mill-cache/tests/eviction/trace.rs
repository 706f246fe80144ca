//! Sequences of requests: which key each of them is for. All are made from fixed seeds.

/// One sequence.
pub(crate) struct Trace {
    pub(crate) name: &'static str,
    pub(crate) keys: Vec<u64>,
}

const REQUESTS: usize = 100_000;

/// Keys of which some are asked for more often than others.
const POPULAR: usize = 20_000;

impl Trace {
    pub(crate) fn all() -> [Self; 6] {
        [
            Self::plain("Zipf 0.7", 0.7),
            Self::plain("Zipf 0.9", 0.9),
            Self::plain("Zipf 1.1", 1.1),
            Self::with_scans(),
            Self::with_wonders(),
            Self::shifting(),
        ]
    }

    fn plain(name: &'static str, exponent: f64) -> Self {
        let mut zipf = Zipf::new(exponent);
        Self {
            name,
            keys: (0..REQUESTS).map(|_| zipf.next()).collect(),
        }
    }

    /// Each 20 000 requests, 4000 keys that were never asked for come in a row, as when a site is copied.
    fn with_scans() -> Self {
        let mut zipf = Zipf::new(0.9);
        let mut fresh = 1 << 40;
        let mut keys = Vec::new();
        while keys.len() < REQUESTS {
            keys.extend((0..20_000).map(|_| zipf.next()));
            keys.extend(fresh..fresh + 4000);
            fresh += 4000;
        }
        let name = "Zipf 0.9 with scans";
        Self { name, keys }
    }

    /// Of ten requests three are for keys that are asked for only once.
    fn with_wonders() -> Self {
        let mut zipf = Zipf::new(0.9);
        let keys = (0..REQUESTS as u64).map(|number| match zipf.random.below(10) {
            0..3 => (1 << 41) + number,
            _ => zipf.next(),
        });
        Self {
            name: "Zipf 0.9 with one-hit wonders",
            keys: keys.collect(),
        }
    }

    /// Each 20 000 requests, other keys become popular.
    fn shifting() -> Self {
        let mut zipf = Zipf::new(0.9);
        let keys = (0..REQUESTS as u64).map(|number| zipf.next() + number / 20_000 * 5000);
        Self {
            name: "Zipf 0.9, popularity shifts",
            keys: keys.collect(),
        }
    }
}

/// Draws keys whose frequency falls with the power of their rank.
struct Zipf {
    random: Random,
    /// The sum of the weights up to each rank.
    sums: Vec<f64>,
}

impl Zipf {
    fn new(exponent: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=POPULAR).map(|rank| {
            sum += f64::from(u32::try_from(rank).unwrap()).powf(-exponent);
            sum
        });
        Self {
            sums: sums.collect(),
            random: Random(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn next(&mut self) -> u64 {
        let all = self.sums.last().copied().unwrap();
        let place = self.random.unit() * all;
        self.sums.partition_point(|sum| *sum < place) as u64
    }
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap()) / f64::from(u32::MAX)
    }
}
