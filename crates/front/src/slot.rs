//! Hash slots, as Redis Cluster has them, and the partitions of a tenant.

/// Hash slots of a cluster.
pub const SLOTS: u16 = 1 << 14;

/// Partitions of a tenant at most: their marks are looked for one by one.
pub const PARTS_MAX: u16 = 256;

/// CRC16 by byte (CCITT, XMODEM), as the cluster specification has it.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = (crc << 1) ^ (if crc & 0x8000 == 0 { 0 } else { 0x1021 });
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The hash slot of a key: that of what is between its first `{` and the next `}`, if that is
/// something, and else of all of it.
pub fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let behind = &key[open + 1..];
        let len = behind.iter().position(|byte| *byte == b'}')?;
        (len > 0).then(|| &behind[..len])
    });
    let crc = tag.unwrap_or(key).iter().fold(0u16, |crc, byte| {
        (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]
    });
    crc % SLOTS
}

/// Of `parts` partitions the one that has this slot: each has a range of them.
pub fn part(slot: u16, parts: u16) -> u16 {
    (u32::from(slot) * u32::from(parts) / u32::from(SLOTS)) as u16
}

/// The first slot of a partition. That of `parts` is one beyond the last.
pub fn first(part: u16, parts: u16) -> u16 {
    (u32::from(part) * u32::from(SLOTS)).div_ceil(u32::from(parts)) as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // `CLUSTER KEYSLOT` of Redis 7.0.15.
        for (key, expected) in [
            (&b"123456789"[..], 12_739),
            (b"", 0),
            (b"foo", 12_182),
            (b"{foo}bar", 12_182),
            (b"a{foo}{bar}", 12_182),
            (b"foo{}{bar}", 8_363),
            (b"foo{{bar}}zap", 4_015),
            (b"{user1000}.following", 3_443),
            (b"user1000", 3_443),
            (b"{bar", 4_015),
        ] {
            assert_eq!(slot(key), expected, "{}", String::from_utf8_lossy(key));
        }
    }

    proptest! {
        #[test]
        fn partitions_are_ranges_that_leave_nothing_out(parts in 1..=PARTS_MAX, at in 0..SLOTS) {
            let has = part(at, parts);
            prop_assert!(has < parts);
            prop_assert!(first(has, parts) <= at && at < first(has + 1, parts));
            prop_assert_eq!((first(0, parts), first(parts, parts)), (0, SLOTS));
        }

        #[test]
        fn keys_with_the_same_tag_have_the_same_slot(
            tag in "[^{}]{1,9}", a in "[^{]{0,9}", b in ".{0,9}"
        ) {
            let key = format!("{a}{{{tag}}}{b}");
            prop_assert_eq!(slot(key.as_bytes()), slot(tag.as_bytes()));
        }
    }
}
