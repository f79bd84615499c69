use super::*;
use proptest::prelude::*;

/// Keys that come near the mark.
fn keys() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0xff_u8), Just(0), any::<u8>()];
    let tail = proptest::collection::vec(byte, 0..20);
    prop_oneof![
        tail.clone(),
        tail.prop_map(|tail| [&MARK[..], &tail].concat())
    ]
}

fn slots() -> impl Strategy<Value = Slot> {
    prop_oneof![0..20_u32, 0..SLOTS_MAX - 1]
}

proptest! {
    #[test]
    fn a_name_is_one_key_of_one_slot(slot in slots(), key in keys()) {
        let name = name(slot, &key);
        prop_assert_eq!(parse(&name), (slot, &key[..]));
        if slot == 0 && !marked(&key) {
            prop_assert_eq!(&*name, &key[..], "such a record is as it was before there were slots");
        }
    }

    #[test]
    fn names_sort_by_slot_and_then_by_key(
        one in (slots(), keys()),
        other in (slots(), keys()),
    ) {
        let [first, second] = [&one, &other].map(|(slot, key)| name(*slot, key).to_vec());
        prop_assert_eq!(first.cmp(&second), one.cmp(&other));
    }

    #[test]
    fn a_slot_is_a_range(slot in slots(), of in slots(), key in keys()) {
        let raw = record::object_key(&name(of, &key));
        let (from, to) = names_of(record::OBJECT, slot);
        prop_assert_eq!((from..to).contains(&raw), slot == of);
    }

    #[test]
    fn an_id_is_of_its_slot(slot in slots(), number in 0..1_u64 << NUMBER_BITS) {
        let id = id(slot, number);
        prop_assert_eq!(slot_of(id), slot);
        prop_assert_eq!(id, super::id(slot, 0) + number);
        let raw = record::piece_key(id, 7);
        let within = |slot: Slot| ranges_of(slot).filter(|(from, to)| (from..to).contains(&&raw)).count();
        prop_assert_eq!((within(slot), within(slot + 1)), (1, 0));
    }
}

#[test]
fn a_naming_is_read_as_it_was_written() {
    let [one, two] = [1, 2].map(|number| Database::new(number).unwrap());
    let naming = Naming::default().swapped(one, two).renewed(one).unwrap();
    assert_eq!(naming.slot(one), DATABASES as Slot);
    assert_eq!(naming.slot(two), 1);
    assert_eq!(naming.database(1), Some(two));
    assert_eq!(naming.database(2), None, "it was emptied");
    assert_eq!(Naming::decode(&naming.encode()), Some(naming.clone()));
    let bytes = naming.encode();
    assert_eq!(Naming::decode(&bytes[1..]), None);
    assert_eq!(Naming::decode(&[0xff; 68]), None, "no such slots");
}

#[test]
fn slots_end_before_ids_do() {
    let last = Naming {
        next: SLOTS_MAX - 2,
        ..Naming::default()
    };
    let used_up = last.renewed(Database::FIRST).unwrap();
    assert_eq!(used_up.renewed(Database::FIRST), None);
    assert_eq!(slot_of(id(SLOTS_MAX - 1, 5)), SLOTS_MAX - 1);
}

#[test]
fn what_has_failed_is_as_it_was() {
    let names = Names::default();
    let start = names.now();
    assert!(!names.moved(&start));
    let [first, second] = [1, 2].map(|number| Database::new(number).unwrap());
    let swapped = Naming::default().swapped(Database::FIRST, first);
    names.change(swapped.clone(), 5, 4);
    let decided = names.now();
    assert!(names.moved(&start));
    names.change(swapped.swapped(first, second), 6, 5);
    names.forget_after(5);
    assert!(
        names.moved(&decided),
        "whoever had the failed one learns of it"
    );
    assert_eq!(names.now().naming(), swapped);
    names.forget_after(5);
    assert_eq!(names.now().naming(), swapped, "nothing is undecided");
    names.reset(None);
    assert_eq!(names.now().naming(), Naming::default());
}
