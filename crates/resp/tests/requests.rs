//! The request parser: by the byte, cut at every place, against random input and against another
//! codec.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use resp::{Limits, Parsed, Parser, ProtocolError};

type Words = Vec<Vec<u8>>;

/// Feeds `input` in pieces that end at `cuts`, as a connection would, and collects what comes out.
fn feed(input: &[u8], cuts: &[usize], limits: &Limits) -> (Vec<Words>, Option<ProtocolError>) {
    let (mut parser, mut buffer, mut found) = (Parser::new(), BytesMut::new(), Vec::new());
    let mut start = 0;
    for &end in cuts.iter().chain([&input.len()]) {
        buffer.extend_from_slice(&input[start..end]);
        start = end;
        loop {
            match parser.parse(&buffer, limits) {
                Ok(Parsed::Command(len)) => {
                    if buffer.starts_with(b"*") {
                        let args = parser.args(&buffer);
                        for index in 0..=args.len() {
                            assert_eq!(parser.word(&buffer, index), args.find(index));
                        }
                    } else {
                        assert_eq!(parser.word(&buffer, 0), None, "its words lie elsewhere");
                    }
                    found.push(parser.args(&buffer).iter().map(<[u8]>::to_vec).collect());
                    let owned = parser.owned(buffer.split_to(len).freeze());
                    let words: Words = owned.args().iter().map(<[u8]>::to_vec).collect();
                    assert_eq!(Some(&words), found.last(), "the owned request differs");
                }
                Ok(Parsed::Skip(len)) => drop(buffer.split_to(len)),
                Ok(Parsed::More(missing)) => {
                    assert!(missing > 0);
                    break;
                }
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

fn words(line: &str) -> Words {
    line.split(' ')
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut wire = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        wire.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        wire.extend_from_slice(word);
        wire.extend_from_slice(b"\r\n");
    }
    wire
}

#[test]
fn requests_come_out_the_same_however_they_are_cut() {
    let inputs: [(&[u8], Vec<Words>); 9] = [
        (b"*1\r\n$4\r\nPING\r\n", vec![words("PING")]),
        (
            b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n",
            vec![words("SET k ")],
        ),
        (
            b"*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\nPING\r\n",
            vec![words("GET \r\n"), words("PING")],
        ),
        (b"PING\nPING\r\n", vec![words("PING"), words("PING")]),
        (b"\r\n*0\r\n*-1\r\n  \r\nPING x\r\n", vec![words("PING x")]),
        (
            b"ECHO \"a\\x41\\n\" 'b\\'c' d\"e\"\r\n",
            vec![words("ECHO aA\n b'c de")],
        ),
        (b"SET  k\t\"\"\r\n", vec![words("SET k ")]),
        // Redis does not look at the two bytes behind a word, nor at the one behind a line's CR.
        (
            b"*1\r\n$4\r\nPINGxxPING\r\n",
            vec![words("PING"), words("PING")],
        ),
        (b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI", vec![words("PING")]),
    ];
    for (input, expected) in inputs {
        for first in 0..=input.len() {
            for second in first..=input.len() {
                let (found, error) = feed(input, &[first, second], &Limits::default());
                assert_eq!(
                    (&found, error),
                    (&expected, None),
                    "cut at {first} and {second}"
                );
            }
        }
    }
}

#[test]
fn what_breaks_the_protocol_gets_the_words_of_redis() {
    let long = |start: &str, byte: &str| (start.to_owned() + &byte.repeat(70_000)).into_bytes();
    // All but the last come from redis-server 7.0.15, which has a limit of 2^31 words instead.
    let errors: [(Vec<u8>, &str); 16] = [
        (b"*3000000000\r\n".to_vec(), "invalid multibulk length"),
        (b"*abc\r\n".to_vec(), "invalid multibulk length"),
        (b"*01\r\n".to_vec(), "invalid multibulk length"),
        (b"*+1\r\n".to_vec(), "invalid multibulk length"),
        (b"*\r\n".to_vec(), "invalid multibulk length"),
        (b"*1\r\nx1\r\n".to_vec(), "expected '$', got 'x'"),
        (b"*1\r\n$-1\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$04\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$abc\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$600000000\r\n".to_vec(), "invalid bulk length"),
        (b"a \"b\r\n".to_vec(), "unbalanced quotes in request"),
        (b"a 'b'c\r\n".to_vec(), "unbalanced quotes in request"),
        (long("x", "x"), "too big inline request"),
        (long("*", "1"), "too big mbulk count string"),
        (long("*1\r\n$", "1"), "too big bulk count string"),
        (b"*1048577\r\n".to_vec(), "invalid multibulk length"),
    ];
    for (input, text) in errors {
        let whole = feed(&input, &[], &Limits::default());
        let cut = feed(
            &input,
            &(1..input.len()).step_by(7).collect::<Vec<_>>(),
            &Limits::default(),
        );
        assert_eq!(whole, cut);
        let error = whole.1.expect("an error").to_string();
        assert_eq!(error, format!("Protocol error: {text}"));
    }
}

#[test]
fn a_stranger_may_send_little() {
    let limits = Limits::unauthenticated();
    let error = |input: &[u8]| feed(input, &[], &limits).1.map(|error| error.to_string());
    assert_eq!(
        error(b"*11\r\n").as_deref(),
        Some("Protocol error: unauthenticated multibulk length")
    );
    assert_eq!(
        error(b"*1\r\n$16385\r\n").as_deref(),
        Some("Protocol error: unauthenticated bulk length")
    );
    assert_eq!(error(b"*10\r\n$16384\r\n"), None);
}

#[test]
fn promises_take_no_memory() {
    let mut parser = Parser::new();
    assert_eq!(parser.capacity(), 0);
    let header = b"*1048576\r\n$134217728\r\n";
    let parsed = parser.parse(header, &Limits::default()).unwrap();
    assert_eq!(parsed, Parsed::More((128 << 20) + 2));
    assert_eq!(parser.capacity(), 0);
    let many = encode(&vec![b"word".to_vec(); 10_000]);
    let mut parser = Parser::new();
    assert_eq!(
        parser.parse(&many, &Limits::default()),
        Ok(Parsed::Command(many.len()))
    );
    assert_eq!(parser.parse(b"", &Limits::default()), Ok(Parsed::More(1)));
    assert!(
        parser.capacity() < 1024,
        "{} bytes are kept",
        parser.capacity()
    );
}

#[test]
fn a_request_beyond_the_buffer_limit_is_refused() {
    let limits = Limits {
        request_bytes_max: 1000,
        ..Limits::default()
    };
    let (_, error) = feed(b"*2\r\n$600\r\n", &[], &limits);
    assert_eq!(error, None);
    let (_, error) = feed(b"*2\r\n$1001\r\n", &[], &limits);
    assert_eq!(error, Some(ProtocolError::TooBigRequest));
}

#[test]
fn large_words_are_slices_of_their_frame() {
    let value = vec![b'v'; 1 << 20];
    let wire = Bytes::from(encode(&[b"SET".to_vec(), b"k".to_vec(), value]));
    let mut parser = Parser::new();
    parser.parse(&wire, &Limits::default()).unwrap();
    let owned = parser.owned(wire.clone());
    let taken = owned.args().bytes(2);
    assert_eq!(taken.as_ptr(), owned.args().get(2).as_ptr());
    // A short word does not keep the megabyte in memory, and borrowed bytes cannot be kept at all.
    assert_ne!(owned.args().bytes(1).as_ptr(), owned.args().get(1).as_ptr());
    let borrowed = parser.args(&wire);
    assert_ne!(borrowed.bytes(2).as_ptr(), borrowed.get(2).as_ptr());
}

fn any_words() -> impl Strategy<Value = Words> {
    vec(vec(any::<u8>(), 0..40), 1..6)
}

fn cuts(len: usize, seeds: &[usize]) -> Vec<usize> {
    let mut cuts: Vec<usize> = seeds.iter().map(|seed| seed % (len + 1)).collect();
    cuts.sort_unstable();
    cuts
}

proptest! {
    #[test]
    fn any_requests_survive_the_wire(requests in vec(any_words(), 1..5), seeds in vec(any::<usize>(), 0..9)) {
        let wire: Vec<u8> = requests.iter().flat_map(|words| encode(words)).collect();
        let (found, error) = feed(&wire, &cuts(wire.len(), &seeds), &Limits::default());
        prop_assert_eq!(found, requests);
        prop_assert_eq!(error, None);
    }

    #[test]
    fn any_bytes_mean_the_same_however_they_are_cut(
        input in vec(prop_oneof![any::<u8>(), prop::sample::select(b"*$-0123456789\r\n\"' ".to_vec())], 0..80),
        seeds in vec(any::<usize>(), 0..9),
    ) {
        let limits = Limits { line_bytes_max: 30, bulk_bytes_max: 100, ..Limits::default() };
        prop_assert_eq!(feed(&input, &[], &limits), feed(&input, &cuts(input.len(), &seeds), &limits));
    }

    /// `redis-protocol` encodes; we read what it meant.
    #[test]
    fn another_codec_agrees(words in any_words()) {
        use redis_protocol::resp2::{encode::encode as encode_frame, types::OwnedFrame};
        let frame = OwnedFrame::Array(words.iter().cloned().map(OwnedFrame::BulkString).collect());
        let mut wire = vec![0; frame_len(&words)];
        let len = encode_frame(&mut wire, &frame, false).unwrap();
        let (found, error) = feed(&wire[..len], &[], &Limits::default());
        prop_assert_eq!(found, vec![words]);
        prop_assert_eq!(error, None);
    }
}

fn frame_len(words: &[Vec<u8>]) -> usize {
    words.iter().map(|word| word.len() + 32).sum::<usize>() + 32
}

/// What `Reply` writes, `redis-protocol` reads as it was meant.
#[test]
fn replies_are_read_by_another_codec() {
    use redis_protocol::resp3::decode::complete::decode;
    use redis_protocol::resp3::types::OwnedFrame;
    use resp::{Output, Protocol, Reply};
    let mut output = Output::new();
    let mut reply = Reply::new(&mut output, Protocol::Resp3);
    reply.array(8);
    reply.ok();
    reply.error("ERR no\r\nmore");
    reply.int(-5);
    reply.bulk(b"a\r\nb");
    reply.null();
    reply.double(2.5);
    reply.boolean(true);
    reply.verbatim("text");
    let wire = output.to_vec();
    let (frame, len) = decode(&wire).unwrap().expect("a whole frame");
    assert_eq!(len, wire.len());
    let OwnedFrame::Array { data, .. } = frame else {
        panic!("an array")
    };
    assert!(matches!(&data[0], OwnedFrame::SimpleString { data, .. } if data == b"OK"));
    assert!(matches!(&data[1], OwnedFrame::SimpleError { data, .. } if data == "ERR no  more"));
    assert!(matches!(&data[2], OwnedFrame::Number { data: -5, .. }));
    assert!(matches!(&data[3], OwnedFrame::BlobString { data, .. } if data == b"a\r\nb"));
    assert!(matches!(&data[4], OwnedFrame::Null));
    assert!(matches!(&data[5], OwnedFrame::Double { data, .. } if *data == 2.5));
    assert!(matches!(&data[6], OwnedFrame::Boolean { data: true, .. }));
    assert!(matches!(&data[7], OwnedFrame::VerbatimString { data, .. } if data == b"text"));
}
