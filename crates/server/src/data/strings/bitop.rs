//! `BITOP`: strings combined bit by bit.

use std::collections::BTreeMap;

use bytes::Bytes;
use engine::{Text, PIECE_BYTES};
use resp::is;

use super::store;
use crate::data::call::{Call, Done, Fail, SYNTAX};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    And,
    Or,
    Xor,
    Not,
}

impl Operation {
    fn parse(word: &[u8]) -> Result<Operation, Fail> {
        let all = [
            ("AND", Operation::And),
            ("OR", Operation::Or),
            ("XOR", Operation::Xor),
            ("NOT", Operation::Not),
        ];
        let found = all.into_iter().find(|(name, _)| is(word, name));
        found.map(|(_, operation)| operation).ok_or(SYNTAX)
    }

    fn apply(self, result: &mut [u8], source: &[u8]) {
        let pairs = result.iter_mut().zip(source);
        match self {
            Operation::And => pairs.for_each(|(a, b)| *a &= b),
            Operation::Or => pairs.for_each(|(a, b)| *a |= b),
            Operation::Xor => pairs.for_each(|(a, b)| *a ^= b),
            Operation::Not => pairs.for_each(|(a, b)| *a = !b),
        }
    }
}

/// What the sources so far come to, in pieces by number; what is in none is zeros.
#[derive(Default)]
struct Combined {
    pieces: BTreeMap<u64, Vec<u8>>,
    len: u64,
}

impl Combined {
    fn add(&mut self, call: &mut Call, operation: Operation, source: &Text) -> Done {
        let mut parts = call.access.parts(source, 0..source.len())?;
        let mut at = parts.at();
        while let Some(part) = parts.next(call.access)? {
            let within = (at % PIECE_BYTES as u64) as usize;
            if let Some(piece) = self.piece(call, operation, at, &part)? {
                operation.apply(&mut piece[within..within + part.len()], &part);
            }
            at = parts.at();
        }
        if operation == Operation::And {
            self.cut(source.len());
        }
        self.len = self.len.max(source.len());
        Ok(())
    }

    /// The piece with byte `at`, which is to be combined with `part`; `None`: it is zeros, and will
    /// be.
    fn piece(
        &mut self,
        call: &mut Call,
        operation: Operation,
        at: u64,
        part: &[u8],
    ) -> Result<Option<&mut Vec<u8>>, Fail> {
        let number = at / PIECE_BYTES as u64;
        let stays = match operation {
            Operation::And => true,
            Operation::Or | Operation::Xor => part.iter().all(|byte| *byte == 0),
            Operation::Not => false,
        };
        if !stays && !self.pieces.contains_key(&number) {
            call.access.work(PIECE_BYTES)?;
            self.pieces.insert(number, vec![0; PIECE_BYTES]);
        }
        Ok(self.pieces.get_mut(&number))
    }

    /// From byte `len` on there are zeros.
    fn cut(&mut self, len: u64) {
        let (number, within) = (len / PIECE_BYTES as u64, len % PIECE_BYTES as u64);
        if let Some(piece) = self.pieces.get_mut(&number) {
            piece[within as usize..].fill(0);
        }
        self.pieces.retain(|kept, _| *kept <= number);
    }

    fn text(self, call: &mut Call) -> Result<Text, Fail> {
        let mut text = Text::default();
        for (number, mut piece) in self.pieces {
            let at = number * PIECE_BYTES as u64;
            piece.truncate(usize::try_from(self.len - at).unwrap_or(PIECE_BYTES));
            call.access.work_done(PIECE_BYTES);
            call.access.write(&mut text, at, Bytes::from(piece))?;
        }
        call.access.extend(&mut text, self.len)?;
        Ok(text)
    }
}

/// `BITOP AND | OR | XOR | NOT destination source …`
///
/// One source after the other is combined with what those before it come to. So the result is in
/// memory, and of the sources what is read at a time.
pub(in crate::data) fn bitop(call: &mut Call) -> Done {
    let operation = Operation::parse(call.arg(1))?;
    if operation == Operation::Not && call.args.len() != 4 {
        return Err(Fail::error(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let mut keys: Vec<&[u8]> = call.args.iter().skip(3).collect();
    keys.sort_unstable();
    let (mut combined, mut first) = (Combined::default(), true);
    for named in keys.chunk_by(|a, b| a == b) {
        let (source, _) = call.string(named[0])?.unwrap_or_default();
        if operation == Operation::Xor && named.len() % 2 == 0 {
            // It cancels itself out.
            combined.len = combined.len.max(source.len());
            continue;
        }
        let operation = match operation {
            // Onto nothing.
            Operation::And if first => Operation::Or,
            other => other,
        };
        combined.add(call, operation, &source)?;
        first = false;
    }
    let (destination, len) = (call.arg(2), combined.len);
    let result = combined.text(call)?;
    if result.is_empty() {
        call.access.delete(destination)?;
    } else {
        store(call, destination, result, None)?;
    }
    call.reply.int(len as i64);
    Ok(())
}
