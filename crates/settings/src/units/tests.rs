use super::*;
use proptest::prelude::*;

fn error<T: std::str::FromStr<Err = String>>(text: &str) -> String {
    match text.parse::<T>() {
        Ok(_) => panic!("{text:?} should be refused"),
        Err(why) => why,
    }
}

#[test]
fn people_write_quantities_in_many_ways() {
    let ns = |text: &str| text.parse::<Time>().expect(text).ns();
    assert_eq!(ns("20ms"), 20_000_000);
    assert_eq!(ns(" 1.5 s "), 1_500_000_000);
    assert_eq!(ns("0.000000001s"), 1);
    assert_eq!(ns("7µs"), ns("7us"));
    assert_eq!(ns("1_000ns"), ns("1us"));
    assert_eq!(ns("0s"), 0);
    let bytes = |text: &str| text.parse::<Bytes>().expect(text).get();
    assert_eq!(
        (bytes("1.5MiB"), bytes("1MB"), bytes("0B")),
        (1_572_864, 1_000_000, 0)
    );
    let rate = |text: &str| text.parse::<Rate>().expect(text).per_s();
    assert_eq!(
        (rate("1.5k/s"), rate("30/min"), rate("2M/h")),
        (1_500.0, 0.5, 2e6 / 3_600.0)
    );
    assert_eq!(
        "1250 MiB/s".parse::<ByteRate>().map(ByteRate::per_s),
        Ok(1_250.0 * 1_048_576.0)
    );
}

#[test]
fn what_is_refused_is_explained() {
    for (why, expected) in [
        (error::<Time>("20"), "has no unit; add a unit of time"),
        (error::<Time>("20MS"), "did you mean \"ms\"?"),
        (error::<Time>("5m"), "write \"min\" for minutes"),
        (error::<Time>("ms"), "does not start with a number"),
        (error::<Time>(""), "does not start with a number"),
        (error::<Time>("1..5s"), "does not start with a number"),
        (error::<Time>("1.s"), "does not start with a number"),
        (error::<Time>("-1s"), "has a sign"),
        (
            error::<Time>("0.5ns"),
            "is not a whole number of nanoseconds",
        ),
        (error::<Time>("400000d"), "is too large"),
        (error::<Time>("99999999999999999999s"), "more digits"),
        (error::<Bytes>("64mib"), "did you mean \"MiB\"?"),
        (error::<Bytes>("64M"), "did you mean \"MiB\"?"),
        (error::<Bytes>("64x"), "is not a unit of data"),
        (
            error::<Bytes>("1.0001KiB"),
            "is not a whole number of bytes",
        ),
        (error::<Rate>("2000"), "does not say per what"),
        (
            error::<Rate>("2000/m"),
            "is not a time to count over: /s, /min, /h",
        ),
        (error::<Rate>("0.5/s"), "a longer time, as 30/min"),
        (error::<Rate>("2K/s"), "did you mean \"k\"?"),
        (error::<ByteRate>("5/s"), "has no unit"),
    ] {
        assert!(why.contains(expected), "{why:?} should say {expected:?}");
    }
}

#[test]
fn the_largest_exact_unit_is_written() {
    for (text, written) in [
        ("120s", "2min"),
        ("1500ms", "1500ms"),
        ("24h", "1d"),
        ("0ms", "0s"),
    ] {
        assert_eq!(
            text.parse::<Time>().map(|time| time.to_string()).as_deref(),
            Ok(written)
        );
    }
    for (text, written) in [
        ("1024KiB", "1MiB"),
        ("1000kB", "1MB"),
        ("1025B", "1025B"),
        ("0MiB", "0B"),
    ] {
        assert_eq!(
            text.parse::<Bytes>()
                .map(|bytes| bytes.to_string())
                .as_deref(),
            Ok(written)
        );
    }
}

fn per() -> impl Strategy<Value = Per> {
    prop_oneof![Just(Per::Second), Just(Per::Minute), Just(Per::Hour)]
}

/// Whole quantities as well as arbitrary ones.
fn quantity() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0u64..5_000,
        (0u64..1_000, 0u32..6).prop_map(|(n, e)| n * 1_000u64.pow(e)),
        (0u64..1_000, 0u32..4).prop_map(|(n, e)| n << (10 * e))
    ]
}

proptest! {
    #[test]
    fn times_round_trip(ns in quantity()) {
        prop_assert_eq!(Time::from_ns(ns).to_string().parse(), Ok(Time::from_ns(ns)));
    }

    #[test]
    fn bytes_round_trip(bytes in quantity()) {
        prop_assert_eq!(Bytes::new(bytes).to_string().parse(), Ok(Bytes::new(bytes)));
    }

    #[test]
    fn rates_round_trip(count in quantity(), per in per()) {
        prop_assert_eq!(Rate::new(count, per).to_string().parse(), Ok(Rate::new(count, per)));
        prop_assert_eq!(ByteRate::new(count, per).to_string().parse(), Ok(ByteRate::new(count, per)));
    }

    #[test]
    fn nonsense_never_panics(text in "\\PC{0,20}") {
        let _ = (text.parse::<Time>(), text.parse::<Bytes>(), text.parse::<Rate>(), text.parse::<ByteRate>());
    }

    #[test]
    fn near_sense_never_panics(text in "[0-9._]{0,25} ?(ms|s|MiB|B|k|)(/s|/min|)") {
        let _ = (text.parse::<Time>(), text.parse::<Bytes>(), text.parse::<Rate>(), text.parse::<ByteRate>());
    }
}
