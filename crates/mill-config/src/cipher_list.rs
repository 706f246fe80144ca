//! OpenSSL's language for sets of ciphers, over those of TLS 1.2 that there are (openssl-ciphers(1)).

/// What such a text selects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// The best first.
    pub names: Vec<&'static str>,
    /// Ciphers that were named and are not there.
    pub absent: Vec<String>,
}

/// The ciphers that a text selects.
pub fn select(text: &str) -> Selected {
    let mut chosen: Vec<&Cipher> = Vec::new();
    let mut killed: Vec<&'static str> = Vec::new();
    let mut absent = Vec::new();
    let words = text.split([':', ',', ' ', ';']);
    for word in words.filter(|word| !word.is_empty()) {
        if let Some(command) = word.strip_prefix('@') {
            if command == "STRENGTH" {
                chosen.sort_by_key(|cipher| std::cmp::Reverse(cipher.strength));
            }
            continue;
        }
        let (operator, set) = match word.split_at_checked(1) {
            Some((operator @ ("!" | "-" | "+"), set)) => (operator, set),
            _ => ("", word),
        };
        let found: Vec<&Cipher> = CIPHERS.iter().filter(|cipher| cipher.is_in(set)).collect();
        let is_found = |cipher: &&Cipher| found.iter().any(|other| other.name == cipher.name);
        match operator {
            "!" => {
                killed.extend(found.iter().map(|cipher| cipher.name));
                chosen.retain(|cipher| !is_found(cipher));
            }
            "-" => chosen.retain(|cipher| !is_found(cipher)),
            "+" => {
                let (last, first): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_found);
                chosen = first.into_iter().chain(last).collect();
            }
            _ => {
                if found.is_empty() && set.contains('-') {
                    absent.push(set.to_owned());
                }
                for cipher in found {
                    let is_new = chosen.iter().all(|other| other.name != cipher.name);
                    if is_new && !killed.contains(&cipher.name) {
                        chosen.push(cipher);
                    }
                }
            }
        }
    }
    Selected {
        names: chosen.iter().map(|cipher| cipher.name).collect(),
        absent,
    }
}

impl Cipher {
    /// Whether it is in a set: all of its words, joined by `+`, have to be the cipher's.
    fn is_in(&self, set: &str) -> bool {
        let has = |word: &str| {
            word == self.name
                || word == self.iana
                || self.words.contains(&word)
                || WORDS_OF_ALL.contains(&word)
        };
        set.split('+').all(has)
    }
}

/// All that there are, for messages.
pub fn known_names() -> String {
    let names: Vec<&str> = CIPHERS.iter().map(|cipher| cipher.name).collect();
    names.join(", ")
}

/// A cipher of TLS 1.2, and the words of sets that it is in.
struct Cipher {
    name: &'static str,
    iana: &'static str,
    words: &'static [&'static str],
    /// Bits of its key.
    strength: u32,
}

/// In OpenSSL's order.
const CIPHERS: [Cipher; 6] = [
    Cipher {
        name: "ECDHE-ECDSA-AES256-GCM-SHA384",
        iana: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        words: &["aECDSA", "ECDSA", "AES", "AESGCM", "AES256"],
        strength: 256,
    },
    Cipher {
        name: "ECDHE-RSA-AES256-GCM-SHA384",
        iana: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        words: &["aRSA", "AES", "AESGCM", "AES256"],
        strength: 256,
    },
    Cipher {
        name: "ECDHE-ECDSA-CHACHA20-POLY1305",
        iana: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        words: &["aECDSA", "ECDSA", "CHACHA20"],
        strength: 256,
    },
    Cipher {
        name: "ECDHE-RSA-CHACHA20-POLY1305",
        iana: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        words: &["aRSA", "CHACHA20"],
        strength: 256,
    },
    Cipher {
        name: "ECDHE-ECDSA-AES128-GCM-SHA256",
        iana: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        words: &["aECDSA", "ECDSA", "AES", "AESGCM", "AES128"],
        strength: 128,
    },
    Cipher {
        name: "ECDHE-RSA-AES128-GCM-SHA256",
        iana: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        words: &["aRSA", "AES", "AESGCM", "AES128"],
        strength: 128,
    },
];

/// Words of sets that all of them are in.
const WORDS_OF_ALL: &[&str] = &[
    "ALL", "DEFAULT", "HIGH", "TLSv1.2", "ECDHE", "EECDH", "kECDHE", "kEECDH", "FIPS",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let selected = select(text);
        let mut short = Vec::new();
        for name in selected.names {
            let name = name
                .replace("ECDHE-", "")
                .replace("AES", "")
                .replace("-GCM", "");
            short.push(
                name.replace("-SHA384", "")
                    .replace("-SHA256", "")
                    .replace("-POLY1305", ""),
            );
        }
        assert_eq!(short.join(" "), expected, "{text}");
    }

    /// The order is what `openssl ciphers` of OpenSSL 3.0 prints, without the ciphers that are not here.
    #[test]
    fn sets_are_read_as_openssl_reads_them() {
        let all = "ECDSA-256 RSA-256 ECDSA-CHACHA20 RSA-CHACHA20 ECDSA-128 RSA-128";
        check("HIGH:!aNULL:!MD5", all);
        check("ALL:!RC4:@SECLEVEL=1", all);
        check(
            "EECDH+AESGCM:EDH+AESGCM",
            "ECDSA-256 RSA-256 ECDSA-128 RSA-128",
        );
        check(
            "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256",
            "RSA-128 ECDSA-128",
        );
        check("kEECDH+aRSA+AES128", "RSA-128");
        check(
            "ALL:-AES256:+ECDSA",
            "RSA-CHACHA20 RSA-128 ECDSA-CHACHA20 ECDSA-128",
        );
        check(
            "!CHACHA20:ALL:CHACHA20",
            "ECDSA-256 RSA-256 ECDSA-128 RSA-128",
        );
        check(
            "-CHACHA20:AES128:CHACHA20",
            "ECDSA-128 RSA-128 ECDSA-CHACHA20 RSA-CHACHA20",
        );
        check(
            "AES128:AES256:@STRENGTH",
            "ECDSA-256 RSA-256 ECDSA-128 RSA-128",
        );
        check("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "RSA-128");
        check("RC4:DES", "");
    }

    #[test]
    fn what_is_named_and_not_there_is_told() {
        let absent =
            select("ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:!DES-CBC3-SHA").absent;
        assert_eq!(absent, ["DHE-RSA-AES128-GCM-SHA256"]);
    }
}
