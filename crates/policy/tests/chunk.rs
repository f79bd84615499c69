//! The size of pieces, for disks that take a time for an I/O and a time for each of its bytes.

use policy::cost::device::{chunk_bytes, Point, CHUNK_BYTES_MAX};
use proptest::prelude::*;

/// What an I/O takes: its own time, and that of its bytes.
#[derive(Clone, Copy, Debug)]
struct Disk {
    own_s: f64,
    bytes_per_s: f64,
}

impl Disk {
    fn takes_s(self, bytes: u64) -> f64 {
        self.own_s + bytes as f64 / self.bytes_per_s
    }

    /// By powers of 2 from 1 KiB to `most`.
    fn rates(self, most: u64) -> Vec<Point> {
        let sizes = (10..).map(|power| 1 << power);
        let sizes = sizes.take_while(|bytes| *bytes <= most);
        sizes
            .map(|bytes| Point {
                bytes,
                per_s: 1.0 / self.takes_s(bytes),
            })
            .collect()
    }

    fn chunk(self, most: u64) -> u64 {
        chunk_bytes(&self.rates(most)).expect("rates")
    }

    fn bandwidth(self, bytes: u64) -> f64 {
        bytes as f64 / self.takes_s(bytes)
    }

    /// Bandwidth of pieces over what a small read takes beside them.
    fn power(self, bytes: u64) -> f64 {
        self.bandwidth(bytes) / (self.takes_s(1 << 10) + self.takes_s(bytes))
    }
}

const MIB: u64 = 1 << 20;

/// Disks on which as many bytes as these are read in the time that an I/O takes of its own.
fn disks(own_bytes: std::ops::Range<f64>) -> impl Strategy<Value = Disk> {
    (own_bytes, 2e7..3e9).prop_map(|(own_bytes, bytes_per_s)| Disk {
        own_s: own_bytes / bytes_per_s,
        bytes_per_s,
    })
}

/// An arm: not even 1 MiB has nine tenths of the bandwidth.
fn arms() -> impl Strategy<Value = Disk> {
    disks(150e3..4e6)
}

/// Flash: 1 MiB has.
fn flash() -> impl Strategy<Value = Disk> {
    disks(1e3..100e3)
}

#[test]
fn a_hard_disk_s_piece_is_read_for_about_as_long_as_the_arm_moves() {
    let arm = |own_s| Disk {
        own_s,
        bytes_per_s: 125e6,
    };
    // 5 GB of data, and the whole of 1 TB; measured up to 1 MiB, and briefly up to 256 KiB.
    for most in [MIB, MIB / 4] {
        assert_eq!(arm(5e-3).chunk(most), MIB, "{most}");
        assert_eq!(arm(12.8e-3).chunk(most), 2 * MIB, "{most}");
    }
    assert_eq!(chunk_bytes(&[]), None);
}

#[test]
fn on_flash_a_piece_has_nine_tenths_of_the_bandwidth() {
    let flash = Disk {
        own_s: 25e-6,
        bytes_per_s: 270e6,
    };
    assert_eq!(flash.chunk(MIB), 64 << 10);
    assert!(flash.bandwidth(64 << 10) > 0.9 * 270e6 && flash.bandwidth(32 << 10) < 0.9 * 270e6);
}

proptest! {
    /// Of an arm's pieces none is better by 6 %, measured or not.
    #[test]
    fn no_other_piece_is_better_by_much(disk in arms(), at in 10u32..=22) {
        let chunk = disk.chunk(MIB);
        prop_assert!(disk.power(chunk) >= 0.94 * disk.power(1 << at), "{chunk} {at}");
        prop_assert!((1 << 10..=CHUNK_BYTES_MAX).contains(&chunk));
    }

    /// Of flash's the smallest that has nine tenths of the bandwidth is taken.
    #[test]
    fn enough_is_enough(disk in flash()) {
        let chunk = disk.chunk(MIB);
        let has = |bytes, part| disk.bandwidth(bytes) >= part * disk.bytes_per_s;
        // At the bound itself rounding decides.
        prop_assert!(has(chunk, 0.899) && !has(chunk / 2, 0.901), "{chunk}");
    }

    /// Whatever was measured, the answer is a size that was, or one beyond the largest.
    #[test]
    fn any_rates_have_an_answer(per_s in prop::collection::vec(1e-3..1e8, 1..12)) {
        let points: Vec<_> = (10..).zip(&per_s).map(|(power, per_s)| Point {
            bytes: 1 << power,
            per_s: *per_s,
        }).collect();
        let chunk = chunk_bytes(&points).expect("rates");
        prop_assert!(chunk.is_power_of_two() && (1 << 10..=CHUNK_BYTES_MAX).contains(&chunk));
    }
}
