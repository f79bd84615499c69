//! The named ways to misbehave: ordinary settings, so that a scenario can say anything of them
//! otherwise.

/// The names, in the order of the reference.
pub const WAYS: &[&str] = &[
    "huge-values",
    "hot-key",
    "deep-pipelines",
    "scans",
    "slow-reader",
    "reconnect-storm",
    "expiry-storm",
    "write-bursts",
    "cache-thrash",
    "half-open",
    "unauthenticated",
    "big-multigets",
    "error-storm",
];

/// What a way does, in words, and the settings that it stands for.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) does: &'static str,
    /// Keys of `[[tenant.load]]`.
    pub(super) settings: &'static str,
}

const fn way(name: &'static str, does: &'static str, settings: &'static str) -> Way {
    Way {
        name,
        does,
        settings,
    }
}

/// One for each of [`WAYS`], in the same order.
pub(super) const ALL: &[Way] = &[
    way(
        "huge-values",
        "reads and writes values of 4 MiB, which fill buffers and links",
        r#"loop = "closed"
connections = 4
depth = 1
mix = { get = 0.5, put = 0.5 }
keys = { count = 16, space = "huge" }
values = { size = "4MiB" }"#,
    ),
    way(
        "hot-key",
        "asks for one key as fast as it can",
        r#"loop = "closed"
connections = 16
depth = 16
mix = { get = 0.9, put = 0.1 }
popularity = { kind = "hotspot", hot_keys = 1, hot_share = 1.0 }"#,
    ),
    way(
        "deep-pipelines",
        "sends thousands of requests at once on each connection",
        r#"loop = "closed"
connections = 8
depth = 4096
mix = { get = 1 }"#,
    ),
    way(
        "scans",
        "walks over ten thousand keys with each request",
        r#"loop = "closed"
connections = 4
depth = 1
mix = { range = 1 }
range = { keys = 10_000 }"#,
    ),
    way(
        "slow-reader",
        "asks for much and reads little, so that replies pile up in the server",
        r#"loop = "closed"
connections = 32
depth = 256
mix = { get = 1 }
read_rate = "20kB/s""#,
    ),
    way(
        "reconnect-storm",
        "makes a connection for each request",
        r#"loop = "closed"
connections = 50
depth = 1
mix = { get = 1 }
reconnect_after = 1"#,
    ),
    way(
        "expiry-storm",
        "stores keys that all expire at the same moment, every two seconds",
        r#"loop = "closed"
connections = 8
depth = 16
mix = { put = 1 }
keys = { count = 100_000, space = "expiring", preload = false }
values = { size = "100B" }
ttl = "2s"
ttl_together = true"#,
    ),
    way(
        "write-bursts",
        "writes a hundred times its usual rate for 200 ms in every two seconds",
        r#"loop = "open"
arrivals = "poisson"
rate = "500/s"
connections = 16
mix = { put = 1 }
values = { size = "4KiB" }
spike = { at = "0s", length = "200ms", every = "2s", times = 100 }"#,
    ),
    way(
        "cache-thrash",
        "reads one key after the other of more than its share of the cache, so that none is met again in time",
        r#"loop = "closed"
connections = 8
depth = 16
mix = { get = 1 }
keys = { count = 50_000, space = "thrash" }
values = { size = "4KiB" }
popularity = { kind = "sequential" }"#,
    ),
    way(
        "half-open",
        "opens connections, sends half a command and then nothing",
        r#"loop = "closed"
connections = 200
handshake = "partial""#,
    ),
    way(
        "unauthenticated",
        "asks without AUTH, over and over",
        r#"loop = "closed"
connections = 20
depth = 4
mix = { get = 1 }
handshake = "none"
reconnect_after = 100"#,
    ),
    way(
        "big-multigets",
        "asks for five thousand keys with each request",
        r#"loop = "closed"
connections = 4
depth = 1
mix = { multiget = 1 }
multiget = { keys = 5000 }"#,
    ),
    way(
        "error-storm",
        "sends nothing but commands that fail",
        r#"loop = "closed"
connections = 8
depth = 64
mix = { invalid = 1 }"#,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_way() {
        let names: Vec<&str> = ALL.iter().map(|way| way.name).collect();
        assert_eq!(names, WAYS);
    }
}
