//! `kv-twitter-hourly`: requests per hour and operation mix of three cache clusters over a week.
//!
//! Source: Yang, Yue, Rashmi, "A large scale analysis of hundreds of in-memory cache clusters at
//! Twitter", OSDI 2020, counted per hour.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::{field, json, Lines};
use crate::draw::Shares;
use crate::error::WorkloadError;
use crate::source::Curve;

/// The clusters that the collection holds.
pub const CLUSTERS: [u32; 3] = [1, 2, 10];
/// Complete hours; the last one of each file is cut short.
const WEEK_HOURS: usize = 168;

/// One hour of one cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hour {
    /// Requests in it.
    pub requests: u64,
    /// How they divide into classes.
    pub shares: Shares,
}

/// One cluster's week.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Its number in the published table.
    pub number: u32,
    /// 168 hours (fewer only in a shortened file).
    pub hours: Vec<Hour>,
    /// Mean length of the keys read, bytes.
    pub key_bytes: f64,
    /// Mean size of the values written, bytes.
    pub value_bytes: f64,
    /// Mean time to live of what is written, seconds.
    pub ttl_s: f64,
}

impl Cluster {
    /// Mean requests per second over the week.
    pub fn rate_per_s(&self) -> f64 {
        let requests: u64 = self.hours.iter().map(|hour| hour.requests).sum();
        requests as f64 / (self.hours.len().max(1) as f64 * 3600.0)
    }

    /// The rate of each hour.
    pub fn curve(&self) -> Curve {
        let rate = |hour: &Hour| hour.requests as f64 / 3600.0;
        Curve {
            rates_per_s: self.hours.iter().map(rate).collect(),
            step_s: 3600.0,
        }
    }
}

#[derive(Deserialize)]
struct MixFile {
    operation_counts: BTreeMap<String, f64>,
    key_size_stats: BTreeMap<String, Summary>,
    value_size_stats: BTreeMap<String, Summary>,
    ttl_stats: BTreeMap<String, Summary>,
    hourly_operations: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Summary {
    count: f64,
    sum: f64,
}

/// Reads one cluster from the trace collection at `folder`.
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`].
pub fn read(folder: &Path, number: u32) -> Result<Cluster, WorkloadError> {
    let folder = folder.join("kv-twitter-hourly");
    let requests = hours(&folder.join(format!("cluster{number}-hourly.csv.gz")))?;
    let path = folder.join(format!("cluster{number}-mix.json.gz"));
    let mix: MixFile = json(&path)?;
    let bad = |reason: String| WorkloadError::TraceLine {
        path: path.clone(),
        line: 1,
        reason,
    };
    let whole = shares(&mix.operation_counts).map_err(bad)?;
    let mut by_hour = vec![BTreeMap::new(); requests.len()];
    for (operation, hours) in &mix.hourly_operations {
        for (stamp, count) in hours {
            let hour = hour_of(stamp).ok_or_else(|| bad(format!("not an hour: `{stamp}`")))?;
            if let Some(counts) = by_hour.get_mut(hour) {
                counts.insert(operation.clone(), *count);
            }
        }
    }
    let hours = requests
        .iter()
        .zip(&by_hour)
        .map(|(&requests, counts)| {
            // An hour without counts of its own has the week's mix.
            let shares = if counts.is_empty() {
                Ok(whole)
            } else {
                shares(counts)
            };
            Ok(Hour {
                requests,
                shares: shares?,
            })
        })
        .collect::<Result<_, String>>()
        .map_err(bad)?;
    Ok(Cluster {
        number,
        hours,
        key_bytes: mean(&mix.key_size_stats, "get"),
        value_bytes: mean(&mix.value_size_stats, "add"),
        ttl_s: mean(&mix.ttl_stats, "add"),
    })
}

fn hours(path: &Path) -> Result<Vec<u64>, WorkloadError> {
    let mut lines = Lines::table(path, "hour,requests")?;
    let mut hours = Vec::new();
    while let Some(line) = lines.next_line()? {
        let mut fields = line.split(',');
        let parsed = field::<usize>("hour", fields.next())
            .and_then(|hour| Ok((hour, field::<u64>("requests", fields.next())?)));
        let (hour, requests) = parsed.map_err(|reason| lines.bad(reason))?;
        if hour != hours.len() {
            return Err(lines.bad(format!("expected hour {}, found {hour}", hours.len())));
        }
        hours.push(requests);
    }
    if hours.is_empty() {
        return Err(lines.bad("the file holds no hours"));
    }
    hours.truncate(WEEK_HOURS);
    Ok(hours)
}

/// Memcached operations as our classes.
fn shares(counts: &BTreeMap<String, f64>) -> Result<Shares, String> {
    let mut shares = Shares::default();
    for (operation, count) in counts {
        match operation.as_str() {
            "get" | "gets" => shares.get += count,
            "set" | "add" | "cas" | "replace" | "append" | "prepend" | "incr" | "decr" => {
                shares.put += count;
            }
            "delete" => shares.delete += count,
            other => return Err(format!("an operation that we do not know: `{other}`")),
        }
    }
    Ok(shares)
}

/// `1970-01-02 03:00:00` is hour 27: the trace's clock is relative.
fn hour_of(stamp: &str) -> Option<usize> {
    let (day, time) = stamp.strip_prefix("1970-01-")?.split_once(' ')?;
    let day: usize = day.parse().ok()?;
    let hour: usize = time.split(':').next()?.parse().ok()?;
    (day >= 1 && hour < 24).then(|| (day - 1) * 24 + hour)
}

fn mean(stats: &BTreeMap<String, Summary>, operation: &str) -> f64 {
    stats
        .get(operation)
        .map_or(0.0, |s| s.sum / s.count.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::write_gz;

    const MIX: &str = r#"{"operation_counts": {"get": 90, "add": 10},
        "key_size_stats": {"get": {"count": 2, "sum": 44}},
        "value_size_stats": {"add": {"count": 2, "sum": 500}},
        "ttl_stats": {"add": {"count": 1, "sum": 60}},
        "hourly_operations": {"get": {"1970-01-01 00:00:00": 3, "1970-01-01 01:00:00": 1},
                              "add": {"1970-01-01 01:00:00": 1}}}"#;

    fn with(csv: &str, mix: &str) -> Result<Cluster, WorkloadError> {
        let folder = tempfile::tempdir().expect("folder");
        let sub = folder.path().join("kv-twitter-hourly");
        std::fs::create_dir(&sub).expect("folder");
        write_gz(&sub.join("cluster7-hourly.csv.gz"), csv);
        write_gz(&sub.join("cluster7-mix.json.gz"), mix);
        read(folder.path(), 7)
    }

    #[test]
    fn reads_hours_and_mixes() {
        let cluster = with("hour,requests\n0,3600\n1,7200\n2,3600\n", MIX).expect("valid");
        assert_eq!(cluster.hours.len(), 3);
        assert_eq!(
            cluster.hours[0].shares,
            Shares {
                get: 3.0,
                ..Shares::default()
            }
        );
        assert_eq!(
            cluster.hours[1].shares,
            Shares {
                get: 1.0,
                put: 1.0,
                ..Shares::default()
            }
        );
        assert_eq!(
            cluster.hours[2].shares,
            Shares {
                get: 90.0,
                put: 10.0,
                ..Shares::default()
            }
        );
        assert_eq!(
            (cluster.key_bytes, cluster.value_bytes, cluster.ttl_s),
            (22.0, 250.0, 60.0)
        );
        assert!((cluster.rate_per_s() - 4.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn errors_name_file_and_line() {
        let say = |csv, mix| with(csv, mix).expect_err("malformed").to_string();
        let bad = say("hour,requests\n0,3600\n1,many\n", MIX);
        assert!(
            bad.ends_with("cluster7-hourly.csv.gz:3: `requests` is not a number: `many`"),
            "{bad}"
        );
        assert!(say("hour,requests\n1,5\n", MIX).contains(":2: expected hour 0, found 1"));
        assert!(say("when,what\n", MIX).contains(":1: expected the header"));
        assert!(say("hour,requests\n", MIX).contains("holds no hours"));
        assert!(say("hour,requests\n0,1\n", "{\n]").contains("cluster7-mix.json.gz:2: "));
        let odd = MIX.replace("\"add\": 10", "\"teleport\": 10");
        assert!(say("hour,requests\n0,1\n", &odd).contains("`teleport`"));
    }
}
