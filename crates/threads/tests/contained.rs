//! A panic that is contained, in a program in which any other ends the process.

use threads::{contained, say_and_end};

#[test]
fn what_is_contained_ends_alone_and_says_where() {
    say_and_end(|thread, what| eprintln!("{thread} has ended the process: {what}"));
    let none: Vec<u32> = Vec::new();
    let failed = contained(|| none[7]).expect_err("there is none");
    assert!(failed.contains("index is 7"), "{failed}");
    assert!(failed.contains("contained.rs:"), "{failed}");
    let inner = contained(|| {
        let inner = contained(|| panic!("inside"));
        assert!(inner.is_err_and(|what| what.starts_with("inside, at ")));
        panic!("outside")
    });
    let outside: Result<(), _> = inner;
    assert!(outside.is_err_and(|what| what.starts_with("outside, at ")));
    assert_eq!(contained(|| 7), Ok(7));
}
