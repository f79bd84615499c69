use std::sync::mpsc::channel;

use super::*;
use crate::tenants::{Pool, TenantSpec};

fn hashed(name: &str, password: &str) -> TenantSpec {
    let mut spec = TenantSpec::new(name);
    spec.password = Password::hash(password.as_bytes()).unwrap();
    spec
}

struct House {
    doorkeeper: Doorkeeper,
    tenants: Registry,
    _directory: tempfile::TempDir,
}

fn house(specs: &[TenantSpec]) -> House {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(stage::ManualClock::default());
    let pool = Pool::new(1 << 20);
    let tenants = Registry::open(directory.path(), specs, 1, pool, clock.clone()).unwrap();
    House {
        doorkeeper: Doorkeeper::start(clock).unwrap(),
        tenants,
        _directory: directory,
    }
}

impl House {
    fn question(&self, name: &str, plain: &str) -> Option<Question> {
        match self
            .doorkeeper
            .quick(&self.tenants, name.as_bytes(), plain.as_bytes())
        {
            Answer::Ask(question) => Some(*question),
            Answer::Yes(_) | Answer::No => None,
        }
    }

    /// Asks so often at once, from as many peers, and waits for all answers.
    fn ask(&self, name: &str, plain: &str, times: u8) -> Vec<Checked> {
        let (tell, told) = channel();
        let questions: Vec<Question> = (0..times)
            .filter_map(|_| self.question(name, plain))
            .collect();
        for (number, question) in questions.into_iter().enumerate() {
            let tell = tell.clone();
            let peer = Peer::of([127, 0, 0, number as u8].into());
            let told = Box::new(move |checked| tell.send(checked).unwrap_or_default());
            self.doorkeeper.ask(question, peer, told);
        }
        drop(tell);
        told.iter().collect()
    }
}

#[test]
fn two_hundred_right_ones_cost_one_hash_and_later_ones_none() {
    let house = house(&[hashed("web", "secret")]);
    assert_eq!(house.ask("web", "secret", 200), [Checked::Right; 200]);
    assert_eq!(house.doorkeeper.hashed(), 1);
    assert!(house.question("web", "secret").is_none(), "known by now");
}

#[test]
fn a_storm_of_the_same_wrong_one_costs_one_hash_whether_or_not_there_is_such_a_name() {
    let house = house(&[hashed("web", "secret")]);
    for (name, hashes) in [("web", 1), ("nosuch", 2), ("\u{e9}", 3)] {
        for _ in 0..3 {
            assert_eq!(house.ask(name, "wrong", 50), [Checked::Wrong; 50]);
        }
        assert_eq!(house.doorkeeper.hashed(), hashes, "{name}");
    }
}

#[test]
fn a_name_that_nobody_has_costs_what_a_tenants_does() {
    let house = house(&[hashed("web", "secret"), TenantSpec::new("open")]);
    let hash = house
        .question("nosuch", "x")
        .map(|question| question.work.hash);
    assert_eq!(
        hash,
        house
            .question("web", "x")
            .map(|question| question.work.hash)
    );
    let empty = self::house(&[]);
    let question = empty
        .question("nosuch", "x")
        .expect("it waits as any other");
    assert!(question
        .work
        .hash
        .starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
}

#[test]
fn what_cannot_be_a_password_or_a_name_is_wrong_at_once() {
    let house = house(&[hashed("web", "secret"), TenantSpec::new("open")]);
    for (name, plain) in [("web", 513), ("open", 513), ("nosuch", 513)] {
        let long = vec![b'x'; plain];
        let answer = house
            .doorkeeper
            .quick(&house.tenants, name.as_bytes(), &long);
        assert!(matches!(answer, Answer::No), "{name}");
    }
    assert!(house.question(&"n".repeat(64), "x").is_some());
    assert!(house.question(&"n".repeat(65), "x").is_none());
    assert_eq!(house.doorkeeper.hashed(), 0);
}

#[test]
fn a_changed_password_is_asked_for_anew() {
    let house = house(&[hashed("web", "old")]);
    assert_eq!(house.ask("web", "new", 1), [Checked::Wrong]);
    let before = house.question("web", "new").expect("to be checked");
    let web = house.tenants.get("web").unwrap();
    web.gate.change(Password::hash(b"new").unwrap());
    assert_eq!(
        house.ask("web", "new", 1),
        [Checked::Right],
        "what was wrong is forgotten"
    );
    assert!(house.question("web", "new").is_none());
    // One that had been asked before the change is told to ask again, not that it is wrong.
    let (tell, told) = channel();
    let peer = Peer::of([127, 0, 0, 1].into());
    house.doorkeeper.ask(
        before,
        peer,
        Box::new(move |checked| tell.send(checked).unwrap_or_default()),
    );
    assert_eq!(
        told.recv(),
        Ok(Checked::Wrong),
        "it is known to be wrong of the old one"
    );
    let old = house.question("web", "old").expect("not accepted");
    web.gate.change(Password::hash(b"newest").unwrap());
    let (tell, told) = channel();
    house.doorkeeper.ask(
        old,
        peer,
        Box::new(move |checked| tell.send(checked).unwrap_or_default()),
    );
    assert_eq!(told.recv(), Ok(Checked::Changed));
}
