//! Writers slowed before their database stalls them.

use policy::stall::{pressure, promised_pause_ns, Cause, Debt, PAUSED_FROM, PAUSE_MAX_NS};
use proptest::prelude::*;

/// RocksDB's triggers as the engine sets them.
const BRINK: Debt = Debt {
    files: 24,
    memtables: 31,
    compaction_bytes: 64 << 30,
};
const MS: u64 = 1_000_000;

/// A database that is written to without pause: memtables are flushed eight at a time, files
/// compacted eight at a time, each after as long as that takes.
struct Database {
    /// KiB that make a memtable.
    memtable: u64,
    /// KiB/ms written, flushed, compacted.
    rates: [u64; 3],
    written: u64,
    debt: Debt,
    /// Until the flush and the compaction under way are done, ms.
    busy: [u64; 2],
    /// Highest pressure seen.
    worst: f64,
}

impl Database {
    fn new(rates: [u64; 3]) -> Database {
        let debt = Debt::default();
        Database {
            memtable: 512,
            rates,
            written: 0,
            debt,
            busy: [0, 0],
            worst: 0.0,
        }
    }

    fn millisecond(&mut self, writes: bool) {
        if writes {
            let before = self.written / self.memtable;
            self.written += self.rates[0];
            self.debt.memtables += self.written / self.memtable - before;
        }
        let [flush, compaction] = &mut self.busy;
        if *flush > 0 {
            *flush -= 1;
            if *flush == 0 {
                self.debt.memtables -= 8;
                self.debt.files += 1;
            }
        } else if self.debt.memtables >= 8 {
            *flush = 8 * self.memtable / self.rates[1] + 1;
        }
        if *compaction > 0 {
            *compaction -= 1;
            if *compaction == 0 {
                self.debt.files -= 8;
            }
        } else if self.debt.files >= 8 {
            *compaction = 64 * self.memtable / self.rates[2] + 1;
        }
        self.worst = self.worst.max(pressure(&self.debt, &BRINK).part);
    }

    /// Writes in batches of 4 ms for this long; KiB/ms in the second half.
    fn run(&mut self, ms: u64) -> f64 {
        let (mut now, mut halfway) = (0, 0);
        while now < ms {
            for _ in 0..4 {
                self.millisecond(true);
            }
            let pause = pressure(&self.debt, &BRINK).pause_ns(4 * MS) / MS;
            for _ in 0..pause {
                self.millisecond(false);
            }
            now += 4 + pause;
            if now < ms / 2 {
                halfway = self.written;
            }
        }
        (self.written - halfway) as f64 / (ms as f64 / 2.0)
    }
}

#[test]
fn who_is_followed_is_never_paused() {
    let rate = Database::new([40, 80, 80]).run(60_000);
    assert!(rate >= 40.0, "{rate}");
}

#[test]
fn who_is_faster_than_flushes_settles_at_their_rate_without_a_stall() {
    for flushes in [1, 2, 5, 20] {
        let mut database = Database::new([100, flushes, 400]);
        let rate = database.run(120_000);
        assert!(database.worst < 1.0, "{flushes}: {}", database.worst);
        let part = rate / flushes as f64;
        assert!((0.9..=1.1).contains(&part), "{flushes}: {rate}");
    }
}

#[test]
fn who_is_faster_than_compaction_settles_at_its_rate_without_a_stall() {
    for compacts in [1, 2, 5, 20] {
        let mut database = Database::new([100, 400, compacts]);
        let rate = database.run(240_000);
        assert!(database.worst < 1.0, "{compacts}: {}", database.worst);
        let part = rate / compacts as f64;
        assert!((0.85..=1.15).contains(&part), "{compacts}: {rate}");
    }
}

#[test]
fn a_promise_bounds_the_pause() {
    // 1,000 bytes at 10,000 a second are due every 100 ms, of which the write took 30.
    assert_eq!(promised_pause_ns(30 * MS, 1000, 10_000), 70 * MS);
    assert_eq!(promised_pause_ns(130 * MS, 1000, 10_000), 0);
    assert_eq!(promised_pause_ns(MS, 1000, 0), u64::MAX - MS);
}

#[test]
fn the_worst_of_three_is_the_cause() {
    let of = |files, memtables, gib: u64| {
        let debt = Debt {
            files,
            memtables,
            compaction_bytes: gib << 30,
        };
        let pressure = pressure(&debt, &BRINK);
        (pressure.part, pressure.cause)
    };
    assert_eq!(of(0, 0, 0), (0.0, Cause::Files));
    assert_eq!(of(12, 8, 16), (0.5, Cause::Files));
    assert_eq!(of(2, 31, 16), (1.0, Cause::Memtables));
    assert_eq!(of(2, 15, 80), (1.25, Cause::Compaction));
}

proptest! {
    #[test]
    fn more_debt_never_pauses_less(
        files in 0..100u64, memtables in 0..100u64, compaction_bytes in 0..1u64 << 38,
        more in (0..10u64, 0..10u64, 0..1u64 << 34), wrote in 0..u64::MAX,
    ) {
        let debt = Debt { files, memtables, compaction_bytes };
        let larger = Debt {
            files: files + more.0,
            memtables: memtables + more.1,
            compaction_bytes: compaction_bytes + more.2,
        };
        let (now, then) = (pressure(&debt, &BRINK), pressure(&larger, &BRINK));
        let pause = now.pause_ns(wrote);
        prop_assert!(now.part <= then.part && pause <= then.pause_ns(wrote));
        prop_assert!(pause <= PAUSE_MAX_NS);
        prop_assert!(now.part > PAUSED_FROM || pause == 0);
    }

    #[test]
    fn a_little_more_debt_pauses_a_little_more(files in 0..24u64, wrote in MS..10 * MS) {
        // One file more makes a write take at most eight times as long in all: there is no cliff.
        let took = |files| {
            let debt = Debt { files, ..Debt::default() };
            (wrote + pressure(&debt, &BRINK).pause_ns(wrote)) as f64
        };
        prop_assert!(took(files + 1) <= 8.0 * took(files) + 1.0);
    }
}
