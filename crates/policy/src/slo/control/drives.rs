//! What is given for the device as a whole, divided over its drives, each of which has a stage.

/// Permits of each of so many drives, where all together are to have `total`: every drive has as
/// many, so what does not divide evenly is rounded up.
#[must_use]
pub fn permits_each(total: u32, drives: u32) -> u32 {
    total.div_ceil(drives.max(1))
}

/// Of `total` permits that are kept free for somebody, those at one of so many drives. What does
/// not divide evenly is kept at the first drives, counted from elsewhere for each `turn`, so that
/// not all tenants have theirs at the same ones.
#[must_use]
pub fn reserved_at(drive: u32, drives: u32, total: u32, turn: u32) -> u32 {
    let drives = drives.max(1);
    let place = (drive + turn % drives) % drives;
    total / drives + u32::from(place < total % drives)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_dealt_out_and_not_to_the_same_drives() {
        assert_eq!(
            [0, 1, 6, 8].map(|total| permits_each(total, 4)),
            [0, 1, 2, 2]
        );
        assert_eq!(permits_each(6, 1), 6);
        for (turn, each) in [
            (0, [2, 2, 1, 1]),
            (1, [2, 1, 1, 2]),
            (u32::MAX, [1, 2, 2, 1]),
        ] {
            let at = |drive| reserved_at(drive, 4, 6, turn);
            assert_eq!([0, 1, 2, 3].map(at), each, "{turn}");
        }
    }
}
