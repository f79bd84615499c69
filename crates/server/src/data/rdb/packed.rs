//! Short collections, which Redis keeps and dumps as one string: "listpacks", and "ziplists" before
//! 7.0.

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element<'p> {
    /// Bytes.
    Text(&'p [u8]),
    /// An integer.
    Int(i64),
}

/// The elements of one, from its first to its last.
pub struct Elements<'p> {
    rest: &'p [u8],
    of: Form,
}

#[derive(Clone, Copy)]
enum Form {
    Listpack,
    Ziplist,
}

/// Cuts `len` bytes off the front.
fn take<'p>(from: &mut &'p [u8], len: usize) -> Option<&'p [u8]> {
    let (head, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(head)
}

/// A little-endian integer with a sign, of one to eight bytes.
fn int(bytes: &[u8]) -> i64 {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

impl<'p> Elements<'p> {
    /// A listpack: its length u32, its number of elements u16, the elements, 255.
    pub fn of_listpack(packed: &'p [u8]) -> Option<Self> {
        let of = Form::Listpack;
        Self::new(packed, 6, of)
    }

    /// A ziplist: its length u32, the place of its last element u32, their number u16, the
    /// elements, 255.
    pub fn of_ziplist(packed: &'p [u8]) -> Option<Self> {
        let of = Form::Ziplist;
        Self::new(packed, 10, of)
    }

    fn new(packed: &'p [u8], head: usize, of: Form) -> Option<Self> {
        let len = u32::from_le_bytes(*packed.first_chunk()?);
        let rest = packed.get(head..)?;
        (len as usize == packed.len()).then_some(Self { rest, of })
    }

    /// The next element; `Some(None)`: there was none left. `None`: it is damaged.
    pub fn next(&mut self) -> Option<Option<Element<'p>>> {
        if self.rest == [0xff] {
            return Some(None);
        }
        let found = match self.of {
            Form::Listpack => self.listpack(),
            Form::Ziplist => self.ziplist(),
        };
        found.map(Some)
    }

    fn listpack(&mut self) -> Option<Element<'p>> {
        let before = self.rest.len();
        let rest = &mut self.rest;
        let head = take(rest, 1)?[0];
        let element = match head {
            0..=0x7f => Element::Int(i64::from(head)),
            0x80..=0xbf => Element::Text(take(rest, usize::from(head & 0x3f))?),
            0xc0..=0xdf => {
                let low = take(rest, 1)?[0];
                let raw = u16::from(head & 0x1f) << 8 | u16::from(low);
                Element::Int(i64::from((raw << 3) as i16 >> 3))
            }
            0xe0..=0xef => {
                let len = usize::from(head & 0x0f) << 8 | usize::from(take(rest, 1)?[0]);
                Element::Text(take(rest, len)?)
            }
            0xf0 => {
                let len = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
                Element::Text(take(rest, len as usize)?)
            }
            0xf1..=0xf3 => Element::Int(int(take(rest, usize::from(head - 0xf0) + 1)?)),
            0xf4 => Element::Int(int(take(rest, 8)?)),
            _ => return None,
        };
        // Behind it is its length once more, to be read from the end.
        let behind = match before - self.rest.len() {
            0..=127 => 1,
            128..=16_382 => 2,
            16_383..=2_097_150 => 3,
            2_097_151..=268_435_454 => 4,
            _ => 5,
        };
        take(&mut self.rest, behind)?;
        Some(element)
    }

    fn ziplist(&mut self) -> Option<Element<'p>> {
        let rest = &mut self.rest;
        // The length of the element before it.
        if take(rest, 1)?[0] == 0xfe {
            take(rest, 4)?;
        }
        let head = take(rest, 1)?[0];
        Some(match head {
            0..=0x3f => Element::Text(take(rest, usize::from(head))?),
            0x40..=0x7f => {
                let len = usize::from(head & 0x3f) << 8 | usize::from(take(rest, 1)?[0]);
                Element::Text(take(rest, len)?)
            }
            0x80 => {
                let len = u32::from_be_bytes(take(rest, 4)?.try_into().ok()?);
                Element::Text(take(rest, len as usize)?)
            }
            0xc0 => Element::Int(int(take(rest, 2)?)),
            0xd0 => Element::Int(int(take(rest, 4)?)),
            0xe0 => Element::Int(int(take(rest, 8)?)),
            0xf0 => Element::Int(int(take(rest, 3)?)),
            0xfe => Element::Int(int(take(rest, 1)?)),
            0xf1..=0xfd => Element::Int(i64::from(head & 0x0f) - 1),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<'p>(mut elements: Elements<'p>) -> Option<Vec<Element<'p>>> {
        let mut found = Vec::new();
        while let Some(element) = elements.next()? {
            found.push(element);
        }
        Some(found)
    }

    /// A listpack with these bytes as its elements.
    fn listpack(elements: &[u8]) -> Vec<u8> {
        let len = (elements.len() + 7) as u32;
        [&len.to_le_bytes()[..], &[0, 0], elements, &[0xff]].concat()
    }

    #[test]
    fn a_listpack_is_read_element_by_element() {
        use Element::{Int, Text};
        let packed = listpack(
            b"\x7f\x01\x83abc\x04\xdf\xff\x02\xe0\x01x\x03\xf1\x00\x80\x03\xf2\xff\xff\xff\x04",
        );
        let elements = all(Elements::of_listpack(&packed).unwrap()).unwrap();
        let wanted = [
            Int(127),
            Text(b"abc"),
            Int(-1),
            Text(b"x"),
            Int(-32_768),
            Int(-1),
        ];
        assert_eq!(elements, wanted);
    }

    #[test]
    fn what_is_cut_or_claims_too_much_is_damaged() {
        assert!(Elements::of_listpack(b"").is_none());
        assert!(Elements::of_listpack(&listpack(b"")[..6]).is_none());
        for bad in [
            &b"\x83ab"[..],
            b"\xf0\xff\xff\xff\xffabc",
            b"\xf5\x01",
            b"\x01",
        ] {
            let packed = listpack(bad);
            assert_eq!(
                all(Elements::of_listpack(&packed).unwrap()),
                None,
                "{bad:?}"
            );
        }
        let endless = [&20u32.to_le_bytes()[..], &[0; 16]].concat();
        assert_eq!(all(Elements::of_ziplist(&endless).unwrap()), None);
    }
}
