//! Series of request rates: `rate-worldcup98`, `rate-nasa-http`, `rate-azure-llm`, `rate-nab`,
//! `kv-twitter-hourly`, and files of the same kind that somebody made.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::{field, synthetic, twitter, Lines};
use crate::error::WorkloadError;
use crate::source::Curve;

/// The real series.
pub const SERIES: &[&str] = &[
    "rate-worldcup98",
    "rate-nasa-http",
    "rate-azure-llm",
    "rate-nab/elb",
    "rate-nab/taxi",
    "rate-nab/tweets",
    "kv-twitter-hourly/1",
    "kv-twitter-hourly/2",
    "kv-twitter-hourly/10",
];

/// Largest file of rates, bytes decompressed.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The series of that name, or what is made from its statistics where the trace collection lacks
/// it, and whether it was made.
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`] if the trace is there and cannot be
/// used.
pub fn read(folder: &Path, name: &str) -> Result<(Curve, bool), WorkloadError> {
    let sub = name.split('/').next().unwrap_or(name);
    if !folder.join(sub).is_dir() {
        return Ok((synthetic::rate(name), true));
    }
    let table =
        |file: &str, header, step_s| column(&folder.join(sub).join(file), header, 1, step_s);
    let nab = |file, step_s| table(file, "timestamp,value", step_s);
    let curve = match name {
        "rate-worldcup98" => table("worldcup98-part1.csv.gz", "utc_minute,requests", 60.0)?,
        "rate-nasa-http" => {
            let path = folder.join(sub).join("nasa-1995-07.txt.gz");
            column(&path, "requests_per_second", 0, 1.0)?
        }
        "rate-azure-llm" => arrivals(&folder.join(sub).join("azure-llm-2023-conv.csv.gz"))?,
        "rate-nab/elb" => nab("elb_request_count_8c0756.csv.gz", 300.0)?,
        "rate-nab/taxi" => nab("nyc_taxi.csv.gz", 1_800.0)?,
        "rate-nab/tweets" => nab("Twitter_volume_AAPL.csv.gz", 300.0)?,
        "kv-twitter-hourly/1" => twitter::read(folder, 1)?.curve(),
        "kv-twitter-hourly/2" => twitter::read(folder, 2)?.curve(),
        _ => twitter::read(folder, 10)?.curve(),
    };
    Ok((curve, false))
}

/// A table with a count per step in one column.
fn column(path: &Path, header: &str, at: usize, step_s: f64) -> Result<Curve, WorkloadError> {
    let mut lines = Lines::table(path, header)?;
    let mut rates_per_s = Vec::new();
    while let Some(line) = lines.next_line()? {
        let count: Result<f64, String> = field("count", line.split(',').nth(at));
        let count = count.map_err(|reason| lines.bad(reason))?;
        rates_per_s.push(count.max(0.0) / step_s);
    }
    if rates_per_s.is_empty() {
        return Err(lines.bad("the file holds no steps"));
    }
    Ok(Curve {
        rates_per_s,
        step_s,
    })
}

/// Arrival times, counted by the second.
fn arrivals(path: &Path) -> Result<Curve, WorkloadError> {
    let mut lines = Lines::table(path, "t_us,context_tokens,generated_tokens")?;
    let mut rates_per_s: Vec<f64> = Vec::new();
    while let Some(line) = lines.next_line()? {
        let at_us: Result<u64, String> = field("t_us", line.split(',').next());
        let second = (at_us.map_err(|reason| lines.bad(reason))? / 1_000_000) as usize;
        if second > 10_000_000 {
            return Err(lines.bad("more than ten million seconds after the first request"));
        }
        if rates_per_s.len() <= second {
            rates_per_s.resize(second + 1, 0.0);
        }
        rates_per_s[second] += 1.0;
    }
    if rates_per_s.is_empty() {
        return Err(lines.bad("the file holds no requests"));
    }
    Ok(Curve {
        rates_per_s,
        step_s: 1.0,
    })
}

/// A text file, perhaps gzip'd: a line for each step with its requests per second; the first line
/// may be a heading.
///
/// # Errors
/// [`WorkloadError::TraceFile`] or [`WorkloadError::TraceLine`].
pub fn read_file(path: &Path, step_s: f64) -> Result<Curve, WorkloadError> {
    let unreadable = |source| WorkloadError::TraceFile {
        path: path.into(),
        source,
    };
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let mut text = String::new();
    let read = if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(&bytes[..])
            .take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
    } else {
        (&bytes[..]).take(FILE_BYTES_MAX).read_to_string(&mut text)
    };
    read.map_err(unreadable)?;
    let bad = |line: usize, reason: String| WorkloadError::TraceLine {
        path: path.into(),
        line: line as u64 + 1,
        reason,
    };
    let mut rates_per_s = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let rate: Result<f64, String> = field("rate", Some(line));
        match rate {
            Ok(rate) if rate.is_finite() && rate >= 0.0 => rates_per_s.push(rate),
            Ok(rate) => return Err(bad(number, format!("{rate} is no rate"))),
            Err(_) if number == 0 => {}
            Err(reason) => return Err(bad(number, reason)),
        }
    }
    if rates_per_s.is_empty() {
        return Err(bad(0, "the file holds no rates".into()));
    }
    Ok(Curve {
        rates_per_s,
        step_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::write_gz;

    fn folder(sub: &str, file: &str, text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::create_dir(folder.path().join(sub)).expect("folder");
        write_gz(&folder.path().join(sub).join(file), text);
        folder
    }

    #[test]
    fn counts_become_rates() {
        let minutes = "utc_minute,requests\n1998-04-30T21:30,120\n1998-04-30T21:31,60\n";
        let made = folder("rate-worldcup98", "worldcup98-part1.csv.gz", minutes);
        let (curve, synthesised) = read(made.path(), "rate-worldcup98").expect("valid");
        assert_eq!(
            (curve.rates_per_s, curve.step_s, synthesised),
            (vec![2.0, 1.0], 60.0, false)
        );
        let times = "t_us,context_tokens,generated_tokens\n0,1,1\n2000000,1,1\n2000001,1,1\n";
        let made = folder("rate-azure-llm", "azure-llm-2023-conv.csv.gz", times);
        let (curve, _) = read(made.path(), "rate-azure-llm").expect("valid");
        assert_eq!(curve.rates_per_s, [1.0, 0.0, 2.0]);
        let wrong = "requests_per_second\n1\nmany\n";
        let made = folder("rate-nasa-http", "nasa-1995-07.txt.gz", wrong);
        let said = read(made.path(), "rate-nasa-http")
            .expect_err("wrong")
            .to_string();
        assert!(
            said.ends_with("nasa-1995-07.txt.gz:3: `count` is not a number: `many`"),
            "{said}"
        );
    }

    #[test]
    fn what_is_absent_is_made_from_its_statistics() {
        for name in SERIES {
            let (curve, synthesised) = read(Path::new("/nonexistent"), name).expect("made");
            assert!(synthesised);
            let (low, high) = curve
                .rates_per_s
                .iter()
                .fold((f64::MAX, 0.0f64), |(low, high), rate| {
                    (low.min(*rate), high.max(*rate))
                });
            assert!(low >= 0.0 && high > low, "{name}: {low} to {high}");
        }
    }

    #[test]
    fn own_files_may_have_a_heading_and_be_packed() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("curve.txt");
        std::fs::write(&path, "rate\n10\n20.5\n").expect("file");
        assert_eq!(
            read_file(&path, 2.0).expect("valid").rates_per_s,
            [10.0, 20.5]
        );
        write_gz(&path, "10\n-1\n");
        let said = read_file(&path, 2.0).expect_err("negative").to_string();
        assert!(said.ends_with("curve.txt:2: -1 is no rate"), "{said}");
        std::fs::write(&path, "rate\n").expect("file");
        assert!(read_file(&path, 2.0).is_err());
        assert!(read_file(&folder.path().join("none"), 2.0).is_err());
    }
}
