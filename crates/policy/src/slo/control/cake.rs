//! Cake (Wang et al., SoCC 2012): algorithms 1 and 2, line by line.
//!
//! Cake knows two clients: one that is latency-sensitive, *l*, and a batch client, *b*. Here l is
//! the tenant with the most important promise of latency, and b is everybody else. Its HDFS is the
//! device stage, its HBase the handler stage. One pool of HDFS handlers is before all disks of a
//! machine; here each drive has its part of the pool.

use super::{Given, Held, PromiseGiven, PromiseSeen, Seen, ShareGiven, DEVICE, HANDLERS};
use crate::cost::Nanos;
use crate::dispatch::Others;
use crate::slo::Objective;

/// Cake's settings by hand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CakeOptions {
    /// Drives behind the device stage.
    pub drives: u32,
    /// HDFS handlers for each of them. Cake has a pool of six, "approximately equal to the number
    /// of disks" (5.2), which were four. Here it is one for each disk with an arm: of two scans at
    /// a disk the arm goes from one to the other after every piece (`cake-tuning-simulated`).
    pub drive_permits: u32,
    /// Pieces of 64 KiB at HDFS (5.1).
    pub chunk_bytes: u64,
    /// The HBase pool grows by 1 below the first latency and shrinks by a quarter above the second
    /// (5.2: 6 and 8 ms, "will potentially have to be readjusted"; `cake-tuning-simulated`).
    pub handled_ns: [Nanos; 2],
    /// Bounds of the pool (5.2: 4 and 72).
    pub handlers: [u32; 2],
    /// The pool at the start.
    pub handlers_first: u32,
    /// Steps are this long ("every 10 seconds"); what comes between is gathered.
    pub interval_ns: Nanos,
}

impl Default for CakeOptions {
    fn default() -> Self {
        CakeOptions {
            drives: 1,
            drive_permits: 1,
            chunk_bytes: 64 << 10,
            handled_ns: [12_000_000, 16_000_000],
            handlers: [4, 72],
            handlers_first: 16,
            interval_ns: 10_000_000_000,
        }
    }
}

/// A stage's allocation to the latency-sensitive client.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    /// Its share; the batch client's is what is left of 1.
    share: f64,
    reserved: u32,
}

/// The controller.
#[derive(Clone, Debug)]
pub struct Cake {
    options: CakeOptions,
    handlers: u32,
    parts: [Part; 2],
    /// Since the last step of its own.
    gathered: Seen,
    why: Vec<String>,
}

/// Longer than any scan is read, in ns.
const SCAN_NS: Nanos = 400_000_000;
/// A scan's next piece is there so soon after the last, in ns: the kernel has read ahead.
const AHEAD_NS: Nanos = 2_000_000;
/// What the linear model may do in a step: 10 % of the share (line 19).
const STEP: f64 = 0.10;

impl Cake {
    /// Both clients begin with half of each stage and no reservation (6.3).
    #[must_use]
    pub fn new(options: CakeOptions) -> Self {
        let part = Part {
            share: 0.5,
            reserved: 0,
        };
        Cake {
            handlers: options.handlers_first,
            parts: [part; 2],
            gathered: Seen::default(),
            why: vec!["Both have half of each stage.".into()],
            options,
        }
    }

    pub(super) fn step(&mut self, held: &[Held], seen: &Seen) -> Given {
        let sensitive = sensitive(held);
        self.gathered.add(seen);
        if self.gathered.elapsed_ns >= self.options.interval_ns {
            let gathered = std::mem::take(&mut self.gathered);
            let of = |(at, held)| Some((held, gathered.promises.get::<usize>(at)?));
            if let Some((held, promise)) = sensitive.and_then(of) {
                self.why.clear();
                self.size_pool(&gathered);
                self.schedule_slo(promise, &held.objective);
                self.schedule_occupancy(promise);
            }
        }
        let own = |(_, held): (usize, &Held)| ShareGiven {
            principal: held.principal,
            share: self.parts.map(|part| part.share),
            reserved: self.parts.map(|part| part.reserved),
        };
        // What the kernel's read-ahead does for HDFS: a scan's pieces are read one after the other.
        let scans = Others {
            run_ns: SCAN_NS,
            linger_ns: AHEAD_NS,
            ..Others::default()
        };
        Given {
            promises: vec![PromiseGiven::default(); held.len()],
            shares: sensitive.map(own).into_iter().collect(),
            rest: self.parts.map(|part| 1.0 - part.share),
            permits: [Some(self.handlers), Some(self.pool())],
            chunk_bytes: Some(self.options.chunk_bytes),
            compaction: None,
            others: [Others::default(), scans],
            why: self.why.clone(),
        }
    }

    /// HDFS handlers of all drives together.
    fn pool(&self) -> u32 {
        self.options.drive_permits.max(1) * self.options.drives.max(1)
    }

    /// 5.2: additive increase, multiplicative decrease of the pool of HBase.
    fn size_pool(&mut self, seen: &Seen) {
        let [low, high] = self.options.handled_ns;
        let [least, most] = self.options.handlers;
        let Some(mean) = seen.handled_ns.checked_div(seen.handled) else {
            return;
        };
        if mean < low {
            self.handlers = (self.handlers + 1).min(most);
        } else if mean > high {
            self.handlers = (self.handlers * 3 / 4).max(least);
        }
        let handlers = self.handlers;
        self.why.push(format!(
            "Requests took handlers {:.1} ms, so there are {handlers}.",
            mean as f64 / 1e6
        ));
    }

    /// Algorithm 1.
    fn schedule_slo(&mut self, seen: &PromiseSeen, objective: &Objective) {
        let latency_ns = seen.latency_ns(objective);
        let Some((latency_ns, wanted)) = latency_ns.zip(objective.latency) else {
            self.why.push("No request came, so nothing changes.".into());
            return;
        };
        let at_most_ns = wanted.at_most_ns;
        let perf = at_most_ns as f64 / latency_ns as f64;
        let (pool, drives) = (self.pool(), self.options.drives.max(1));
        let part = &mut self.parts[DEVICE];
        let shared = pool.saturating_sub(part.reserved).max(1);
        let (share, reserved) = (part.share, part.reserved);
        if perf < 1.0 {
            // Line 4: SLO not met. Lines 5 to 7.
            // The last shared one is never reserved (5.3.1), at any drive.
            if share > 0.99 && shared > drives {
                part.share = (share - 1.0 / f64::from(shared)).max(0.0);
                part.reserved += 1;
            } else {
                // Line 9.
                part.share = (share + linear_model(share, perf)).min(1.0);
            }
        } else if perf > 1.2 {
            // Line 10: SLO exceeded. Lines 11 to 13.
            if share < 0.01 && reserved > 0 {
                part.reserved -= 1;
                part.share = (share + 1.0 / f64::from(shared + 1)).min(1.0);
            } else {
                // Line 15.
                part.share = (share - linear_model(share, perf)).max(0.0);
            }
        }
        self.why.push(format!(
            "Latency was {:.1} ms of {:.1} promised, so the share of the device goes from {:.1} to {:.1} % and its reserved permits from {} to {}.",
            latency_ns as f64 / 1e6,
            at_most_ns as f64 / 1e6,
            share * 100.0,
            part.share * 100.0,
            reserved,
            part.reserved,
        ));
    }

    /// Algorithm 2.
    fn schedule_occupancy(&mut self, seen: &PromiseSeen) {
        // Lines 4 and 5: shares move in step.
        self.parts[HANDLERS].share = self.parts[DEVICE].share;
        let [hbase, hdfs] = seen.occupied;
        let before = self.parts[HANDLERS].reserved;
        if hdfs < hbase {
            // Lines 6 to 8; the last handler is never reserved (5.3.2).
            if before + 1 < self.handlers {
                self.parts[HANDLERS].reserved += 1;
            }
        } else if hdfs > 1.5 * hbase && before > self.parts[DEVICE].reserved {
            // Lines 9 to 11.
            self.parts[HANDLERS].reserved -= 1;
        }
        let reserved = &mut self.parts[HANDLERS].reserved;
        *reserved = (*reserved).min(self.handlers.saturating_sub(1));
        self.why.push(format!(
            "It waited {:.0} % of the time for handlers and {:.0} % for the device, so its reserved handlers go from {before} to {reserved}.",
            hbase * 100.0,
            hdfs * 100.0,
        ));
    }
}

/// Lines 16 to 20.
fn linear_model(share: f64, perf: f64) -> f64 {
    let target = (share / perf).min(1.0);
    let change = (share - target).abs();
    change.min(share * STEP)
}

/// The tenant with the most important promise of latency, the first of equals.
fn sensitive(held: &[Held]) -> Option<(usize, &Held)> {
    let all = held.iter().enumerate().rev();
    let with_latency = all.filter(|(_, held)| held.objective.latency.is_some());
    with_latency.max_by_key(|(_, held)| held.objective.importance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slo::Latency;

    #[test]
    fn of_the_permits_of_four_drives_one_of_each_stays_shared() {
        let mut cake = Cake::new(CakeOptions {
            drives: 4,
            drive_permits: 2,
            ..CakeOptions::default()
        });
        assert_eq!(cake.step(&[], &Seen::default()).permits[DEVICE], Some(8));
        let objective = Objective {
            latency: Some(Latency {
                percentile: 99.0,
                at_most_ns: 100_000_000,
            }),
            throughput_per_s: None,
            contract_per_s: None,
            importance: 1,
            window_ns: 10_000_000_000,
        };
        let mut late = PromiseSeen::default();
        late.latencies.record(1_000_000_000);
        for _ in 0..200 {
            cake.schedule_slo(&late, &objective);
        }
        assert_eq!(cake.parts[DEVICE].reserved, 4);
    }
}
