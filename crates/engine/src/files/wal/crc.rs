//! CRC-32C (RFC 3720, B.4), eight bytes at a time, and the mask that RocksDB puts on it.

const POLYNOMIAL: u32 = 0x82f6_3b78;

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[table - 1][byte];
            tables[table][byte] = (crc >> 8) ^ tables[0][(crc & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

static TABLES: [[u32; 256]; 8] = tables();

/// The checksum of some bytes.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        let (low, high) = eight.split_at(4);
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap_or_default());
        let (low, high) = (word(low) ^ crc, word(high));
        crc = (0..4).fold(0, |crc, at| {
            let byte = |word: u32| (word >> (8 * at)) as usize & 0xff;
            crc ^ TABLES[7 - at][byte(low)] ^ TABLES[3 - at][byte(high)]
        });
    }
    let step =
        |crc: u32, byte: &u8| (crc >> 8) ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xff) as usize];
    !eights.remainder().iter().fold(crc, step)
}

/// As RocksDB stores it, so that a checksum of checksums is none (`util/crc32c.h`).
pub(super) fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standard() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&up), 0x46dd_794e);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
