//! `kv-meta-cachelib`: value sizes and popularity measured in Meta's caches, and a small sample of
//! requests.
//!
//! Source: CacheLib (Berg et al., OSDI 2020), the distributions of its CacheBench.

use std::path::Path;

use serde::Deserialize;

use super::{field, json, Lines};
use crate::draw::{Class, Popularity, Sizes};
use crate::error::WorkloadError;
use policy::generator::mix64;

/// The workloads of key-value caches there whose distributions are read.
pub const WORKLOADS: &[&str] = &[
    "kvcache_reg",
    "graph_cache_follower_assocs",
    "graph_cache_leader_fbobj",
];

/// What was measured of one workload (for example `kvcache_reg`).
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Value sizes in bytes with their weights.
    pub sizes: Vec<(u32, f64)>,
    /// Buckets of equally popular keys, hottest first: (keys, accesses to all of them).
    pub popularity: Vec<(u64, f64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SizesFile {
    val_size_range: Vec<f64>,
    val_size_range_probability: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PopularityFile {
    popularity_buckets: Vec<u64>,
    popularity_weights: Vec<f64>,
}

/// Reads one workload's distributions from the trace collection at `folder`.
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`].
pub fn read(folder: &Path, workload: &str) -> Result<Distribution, WorkloadError> {
    let folder = folder.join("kv-meta-cachelib");
    let path = folder.join(format!("dist-{workload}-sizes.json.gz"));
    let sizes: SizesFile = json(&path)?;
    let bad = |path: &Path, reason: &str| WorkloadError::TraceLine {
        path: path.into(),
        line: 1,
        reason: reason.into(),
    };
    if sizes.val_size_range.len() != sizes.val_size_range_probability.len() {
        return Err(bad(&path, "sizes and probabilities differ in number"));
    }
    let paired = sizes
        .val_size_range
        .iter()
        .zip(&sizes.val_size_range_probability);
    let sizes: Vec<(u32, f64)> = paired
        .map(|(size, weight)| (*size as u32, *weight))
        .collect();
    if !sizes.iter().any(|(_, weight)| *weight > 0.0) {
        return Err(bad(&path, "no size has a weight"));
    }
    let path = folder.join(format!("dist-{workload}-pop.json.gz"));
    let file: PopularityFile = json(&path)?;
    if file.popularity_buckets.len() != file.popularity_weights.len() {
        return Err(bad(&path, "buckets and weights differ in number"));
    }
    let popularity: Vec<(u64, f64)> = file
        .popularity_buckets
        .into_iter()
        .zip(file.popularity_weights)
        .collect();
    if !popularity.iter().any(|(_, weight)| *weight > 0.0) {
        return Err(bad(&path, "no bucket has a weight"));
    }
    Ok(Distribution { sizes, popularity })
}

impl Distribution {
    /// The sizes, ready to draw from.
    pub fn sizes(&self) -> Sizes {
        Sizes::histogram(&self.sizes).unwrap_or(Sizes::Constant(1))
    }

    /// The popularity, ready to draw from and folded onto `keys` keys.
    pub fn popularity(&self, keys: u64) -> Popularity {
        Popularity::buckets(&self.popularity, keys).unwrap_or(Popularity::Uniform(keys))
    }

    /// Mean value size, bytes.
    pub fn mean_bytes(&self) -> f64 {
        let total: f64 = self.sizes.iter().map(|(_, weight)| weight).sum();
        self.sizes
            .iter()
            .map(|(size, weight)| f64::from(*size) * weight)
            .sum::<f64>()
            / total
    }
}

/// One row of the request sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Seconds from the first row (the source's clock is 1 s).
    pub at_s: u64,
    /// Key number, from the anonymised key.
    pub key: u64,
    /// Key length, bytes.
    pub key_bytes: u16,
    /// What was asked.
    pub class: Class,
    /// Requests folded into the row.
    pub count: u32,
    /// Value size, bytes; 0 = not found or unknown.
    pub value_bytes: u32,
    /// Time to live, seconds; 0 = none.
    pub ttl_s: u32,
}

const HEADER: &str = "op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase";

/// Reads the sample of requests to a key-value cache.
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`].
pub fn sample(folder: &Path) -> Result<Vec<Row>, WorkloadError> {
    let path = folder.join("kv-meta-cachelib/kv_traces_1.csv.gz");
    let mut lines = Lines::table(&path, HEADER)?;
    let (mut rows, mut start_s) = (Vec::new(), None);
    while let Some(line) = lines.next_line()? {
        let row = row(line, &mut start_s).map_err(|reason| lines.bad(reason))?;
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(lines.bad("the file holds no requests"));
    }
    Ok(rows)
}

fn row(line: &str, start_s: &mut Option<u64>) -> Result<Row, String> {
    let mut fields = line.split(',');
    let at_s: u64 = field("op_time", fields.next())?;
    let start_s = *start_s.get_or_insert(at_s);
    let key = fields.next().ok_or("`key` is missing")?;
    let key = key
        .bytes()
        .fold(0, |hash, byte| mix64(hash ^ u64::from(byte)));
    let key_bytes = field("key_size", fields.next())?;
    let class = match fields.next().unwrap_or_default() {
        "GET" | "GET_LEASE" => Class::Get,
        "SET" | "SET_LEASE" => Class::Put,
        "DELETE" => Class::Delete,
        other => return Err(format!("an operation that we do not know: `{other}`")),
    };
    let count = field("op_count", fields.next())?;
    let value_bytes = field("size", fields.next())?;
    let _hits: u64 = field("cache_hits", fields.next())?;
    let ttl_s = field("ttl", fields.next())?;
    let at_s = at_s
        .checked_sub(start_s)
        .ok_or("the rows are not in order of time")?;
    Ok(Row {
        at_s,
        key,
        key_bytes,
        class,
        count,
        value_bytes,
        ttl_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::write_gz;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join("kv-meta-cachelib")).expect("folder");
        for (name, text) in files {
            write_gz(&folder.path().join("kv-meta-cachelib").join(name), text);
        }
        folder
    }

    const SIZES: (&str, &str) = (
        "dist-w-sizes.json.gz",
        r#"{"valSizeRange": [10, 30], "valSizeRangeProbability": [3, 1]}"#,
    );
    const POPULARITY: (&str, &str) = (
        "dist-w-pop.json.gz",
        r#"{"oneHits": 0.1, "popularityBuckets": [1, 9], "popularityWeights": [50, 50]}"#,
    );

    #[test]
    fn reads_distributions() {
        let read = read(folder(&[SIZES, POPULARITY]).path(), "w").expect("valid");
        assert_eq!(read.mean_bytes(), 15.0);
        assert_eq!(read.popularity(100).keys(), 10);
        assert_eq!(read.popularity(4).keys(), 4);
    }

    #[test]
    fn uneven_distributions_are_refused() {
        let uneven = (
            SIZES.0,
            r#"{"valSizeRange": [10], "valSizeRangeProbability": [3, 1]}"#,
        );
        let error = read(folder(&[uneven, POPULARITY]).path(), "w").expect_err("uneven");
        assert!(error.to_string().contains("differ in number"));
        let empty = (
            POPULARITY.0,
            r#"{"popularityBuckets": [], "popularityWeights": []}"#,
        );
        assert!(read(folder(&[SIZES, empty]).path(), "w").is_err());
        let error = read(folder(&[SIZES]).path(), "w")
            .expect_err("absent")
            .to_string();
        assert!(error.contains("dist-w-pop.json.gz"), "{error}");
    }

    #[test]
    fn reads_the_sample_and_names_bad_lines() {
        let sampled = |rows: &str| {
            let text = format!("{HEADER}\n{rows}");
            sample(folder(&[("kv_traces_1.csv.gz", &text)]).path())
        };
        let rows =
            sampled("50,ab,24,GET,3,10,3,0,1,1\n52,ab,24,DELETE,1,0,0,0,1,1\n").expect("valid");
        assert_eq!(
            (rows[0].at_s, rows[0].class, rows[0].count),
            (0, Class::Get, 3)
        );
        assert_eq!(
            (rows[1].at_s, rows[1].class, rows[1].key),
            (2, Class::Delete, rows[0].key)
        );
        let error = |rows| sampled(rows).expect_err("malformed").to_string();
        assert!(error("50,ab,24,FLY,1,0,0,0,1,1\n").contains(":2: an operation"));
        assert!(error("50,ab,24,GET\n").contains(":2: `op_count` is missing"));
        assert!(
            error("50,ab,24,GET,1,0,0,0,1,1\n9,ab,24,GET,1,0,0,0,1,1\n").contains(":3: the rows")
        );
    }
}
