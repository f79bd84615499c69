//! Fuzzes the RESP codec: no input may crash it, and how input is cut into pieces must not matter.
#![no_main]

use libfuzzer_sys::fuzz_target;
use resp::{Limits, Parsed, Parser, ProtocolError};

/// Memory that the parser may hold beyond what the input itself accounts for, in bytes.
const MEMORY_SLACK: usize = 64 << 10;

/// What a stream of bytes said: its commands, and the error that ended it, if one did.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    commands: Vec<Vec<Vec<u8>>>,
    error: Option<ProtocolError>,
}

/// Small limits, so that a fuzzer reaches them with small inputs.
fn limits(choice: u8) -> Limits {
    match choice % 3 {
        0 => Limits::default(),
        1 => Limits::unauthenticated(),
        _ => Limits {
            args_max: 8,
            bulk_bytes_max: 32,
            line_bytes_max: 64,
            request_bytes_max: 256,
            authenticated: true,
        },
    }
}

/// Takes all whole requests off the front of `buffer`. False when the connection would be closed.
fn drain(parser: &mut Parser, buffer: &mut Vec<u8>, limits: &Limits, heard: &mut Heard) -> bool {
    loop {
        let used = match parser.parse(buffer, limits) {
            Ok(Parsed::Command(used)) => {
                let words = parser.args(buffer);
                assert!(!words.is_empty(), "a command has a name");
                heard
                    .commands
                    .push(words.iter().map(<[u8]>::to_vec).collect());
                used
            }
            Ok(Parsed::Skip(used)) => used,
            Ok(Parsed::More(missing)) => {
                assert!(missing > 0, "to ask for nothing is to wait for ever");
                return true;
            }
            Err(error) => {
                heard.error = Some(error);
                return false;
            }
        };
        assert!(
            used > 0 && used <= buffer.len(),
            "used {used} of {}",
            buffer.len()
        );
        buffer.drain(..used);
    }
}

/// Feeds `input` in pieces of the given lengths, which repeat; 0 stands for all that is left.
fn hear(input: &[u8], pieces: &[u8], limits: &Limits) -> Heard {
    let (mut parser, mut buffer, mut heard) = (Parser::default(), Vec::new(), Heard::default());
    let mut rest = input;
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let wanted = lengths.next().map_or(0, |length| usize::from(*length));
        let (piece, after) = rest.split_at(if wanted == 0 {
            rest.len()
        } else {
            wanted.min(rest.len())
        });
        rest = after;
        buffer.extend_from_slice(piece);
        if !drain(&mut parser, &mut buffer, limits, &mut heard) {
            break;
        }
        let fair = 32 * input.len() + MEMORY_SLACK;
        assert!(
            parser.capacity() <= fair,
            "{} bytes held for {} received",
            parser.capacity(),
            input.len()
        );
    }
    heard
}

/// Commands as a client would send them.
fn encode(commands: &[Vec<Vec<u8>>]) -> Vec<u8> {
    let mut out = Vec::new();
    for words in commands {
        out.extend(format!("*{}\r\n", words.len()).bytes());
        for word in words {
            out.extend(format!("${}\r\n", word.len()).bytes());
            out.extend_from_slice(word);
            out.extend(b"\r\n");
        }
    }
    out
}

// The first byte chooses the limits, the next four how the rest is cut.
fuzz_target!(|data: &[u8]| {
    let Some((head, input)) = data.split_at_checked(5) else {
        return;
    };
    let limits = limits(head[0]);
    let whole = hear(input, &[], &limits);
    assert_eq!(
        whole,
        hear(input, &head[1..], &limits),
        "cut by {:?}",
        &head[1..]
    );
    assert_eq!(whole, hear(input, &[1], &limits), "cut into single bytes");

    // What was understood, said again in the usual form, is understood the same.
    let again = hear(&encode(&whole.commands), &[], &Limits::default());
    assert_eq!(
        again,
        Heard {
            commands: whole.commands,
            error: None
        }
    );
});
