//! The checksum of a dump: CRC-64 with the polynomial of Jones, bits reflected, from 0.

/// The polynomial, reflected.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// For each byte, and for each byte with one to seven more behind it, what it does to the checksum.
static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u64, 0);
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut behind = 1;
    while behind < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[behind - 1][byte];
            tables[behind][byte] = before >> 8 ^ tables[0][before as usize & 0xff];
            byte += 1;
        }
        behind += 1;
    }
    tables
}

/// The checksum of some bytes, given in parts. A gigabyte takes a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum(u64);

impl Checksum {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let word = word.try_into().map_or(0, u64::from_le_bytes) ^ self.0;
            let looked_up = (0..8).map(|at| TABLES[7 - at][(word >> (8 * at)) as usize & 0xff]);
            self.0 = looked_up.fold(0, |sum, one| sum ^ one);
        }
        for byte in words.remainder() {
            self.0 = self.0 >> 8 ^ TABLES[0][(self.0 as u8 ^ byte) as usize];
        }
    }

    /// As it stands at the end of a dump.
    pub fn bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_to_the_same_as_the_whole() {
        let mut whole = Checksum::default();
        whole.add(b"123456789");
        // The check value of CRC-64/REDIS.
        assert_eq!(whole.0, 0xe9c6_d914_c4b8_d9ca);
        let bytes: Vec<u8> = (0..=255).collect();
        let mut at_once = Checksum::default();
        at_once.add(&bytes);
        for cut in 0..bytes.len() {
            let mut parts = Checksum::default();
            parts.add(&bytes[..cut]);
            parts.add(&bytes[cut..]);
            assert_eq!(parts, at_once, "{cut}");
        }
    }
}
