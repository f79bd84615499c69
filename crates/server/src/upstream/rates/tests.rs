use super::*;
use parking_lot::Mutex;

#[derive(Default)]
struct Heard(Mutex<BTreeMap<String, Kept>>);

impl House for Heard {
    fn tenants(&self) -> Vec<Seen> {
        Vec::new()
    }

    fn keep(&self, tenant: &str, kept: &Kept) {
        self.0.lock().insert(tenant.to_owned(), kept.clone());
    }

    fn promises(&self) -> Vec<(Which, Reading)> {
        Vec::new()
    }

    fn attained(&self, _fronts: usize, _elsewhere: BTreeMap<Which, Elsewhere>) {}

    fn kept(&self) -> String {
        String::new()
    }

    fn reads_replicas(&self) -> bool {
        false
    }

    fn runs_scripts(&self) -> bool {
        false
    }

    fn changed(&self) {}
}

fn seen(requests: u64, occupied_ns: u64) -> Seen {
    let mut promise = Promise::share(1.0);
    promise.limit.requests_per_s = Some(1_000.0);
    promise.contract_per_s = Some(100.0);
    Seen {
        tenant: "web".into(),
        principal: PrincipalId(0),
        promise,
        contracts: Vec::new(),
        usage: Usage {
            requests,
            occupied_ns,
            ..Usage::default()
        },
        held_ns: 0,
        connected: false,
    }
}

fn entries(told: &[(&str, &str)]) -> Value {
    let words = told.iter().flat_map(|(front, text)| [*front, *text]);
    let text = |word: &str| Value::Text(word.as_bytes().to_vec());
    Value::List(words.map(text).collect())
}

#[test]
fn a_round_is_due_at_once_and_then_after_a_while() {
    let mut rates = Rates::default();
    assert!(rates.is_due(1_000));
    rates.tell(&[], 2, 1_000);
    assert!(!rates.is_due(200_000_000) && rates.is_due(250_001_000));
}

#[test]
fn a_limit_goes_where_it_is_used_and_a_contract_where_it_is_asked_for() {
    let (mut rates, house) = (Rates::default(), Heard::default());
    let other = |front: &str| front == "b";
    // This front has 500 requests a second and more would come; the other has none.
    let idle = "web 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n";
    for second in 1..=4 {
        let seen = [seen(500 * second, 1_000_000_000 * second)];
        let mine = rates.tell(&seen, 2, 1_000_000_000 * second);
        let all = entries(&[
            ("a", &mine),
            ("b", idle),
            ("gone", "web 9 1 1 9 9 9 1 1 9 9 9 1 1 9 9\n"),
        ]);
        rates.hear(&all, other, &house);
    }
    let kept = house.0.lock()["web"].portions;
    assert!(kept.limit > 0.98 && kept.promised > 0.98, "{kept:?}");
    // The other is given up to as soon as it says so, and has been given nothing before.
    let wants = "web 0.005 1 0.005 9 9 0.5 0 0.5 9 9 0 0 0 9 9\n";
    rates.hear(&entries(&[("b", wants)]), other, &house);
    let kept = house.0.lock()["web"].portions;
    assert!(kept.limit < 0.51 && kept.promised < 0.51, "{kept:?}");
}

/// A tenant that is served as much here as at `b`, and waits there.
fn shared(rates: &mut Rates, house: &Heard, seconds: std::ops::RangeInclusive<u64>) -> f64 {
    for second in seconds {
        let mut seen = seen(500 * second, 0);
        seen.held_ns = 1_000_000_000 * second;
        rates.tell(&[seen], 2, 1_000_000_000 * second);
        let there = "web 0 0 0 0 0 0 0 0 0 0 3000 1 0.75 1500 3000\n";
        rates.hear(&entries(&[("b", there)]), |front| front == "b", house);
    }
    house.0.lock()["web"].portions.weight
}

#[test]
fn a_weight_is_where_its_tenant_is_served() {
    let (mut rates, house) = (Rates::default(), Heard::default());
    // A quarter of it, twice that for two fronts, and a little that is even.
    let weight = shared(&mut rates, &house, 1..=20);
    assert!((weight - 0.525).abs() < 0.03, "{weight}");
}

#[test]
fn weights_that_are_not_divided_stay_whole() {
    let (mut rates, house) = (Rates::new(false), Heard::default());
    assert_eq!(shared(&mut rates, &house, 1..=20), 1.0);
    let kept = house.0.lock()["web"].portions;
    assert!(kept.limit < 1.0, "its limits are divided: {kept:?}");
}

#[test]
fn who_hears_of_nobody_keeps_rates_and_has_its_weight_again() {
    let (mut rates, house) = (Rates::default(), Heard::default());
    shared(&mut rates, &house, 1..=20);
    let before = house.0.lock()["web"].portions;
    rates.alone(&house);
    let after = house.0.lock()["web"].portions;
    let expected = Portions {
        weight: 1.0,
        ..before
    };
    assert_eq!(after, expected);
    // When it hears of them again, it begins as it is.
    let weight = shared(&mut rates, &house, 21..=21);
    assert!(weight < 1.0, "{weight}");
    // Who has nothing divided any more has all of it.
    rates.tell(&[], 2, 22_000_000_000);
    rates.hear(&entries(&[]), |_| true, &house);
    assert_eq!(house.0.lock()["web"], Kept::default());
}

#[test]
fn who_is_served_only_elsewhere_has_its_weight_here_when_it_comes() {
    let (mut rates, house) = (Rates::default(), Heard::default());
    let idle = |tenant: &str| Seen {
        tenant: tenant.into(),
        principal: PrincipalId(0),
        promise: Promise::share(1.0),
        contracts: Vec::new(),
        usage: Usage::default(),
        held_ns: 0,
        connected: false,
    };
    let there =
        "web 0 0 0 0 0 0 0 0 0 0 3000 1 1 1500 3000\nquiet 0 0 0 0 0 0 0 0 0 0 0 0 0.5 0 0\n";
    for second in 1..=10 {
        let seen = [idle("web"), idle("quiet")];
        rates.tell(&seen, 2, 1_000_000_000 * second);
        rates.hear(&entries(&[("b", there)]), |front| front == "b", &house);
    }
    let kept = house.0.lock();
    assert!(kept["web"].portions.weight > 0.99, "{kept:?}");
    assert!(!kept.contains_key("quiet"));
}

/// Gets come here, and scans to the other front: each has nearly all of the contract that it is
/// asked for, though the tenant is served at both.
#[test]
fn a_contract_of_a_promise_goes_where_that_is_asked_for() {
    let (mut rates, house) = (Rates::default(), Heard::default());
    let contract = |name: &str, requests: u64| ContractSeen {
        name: name.into(),
        per_s: 100.0,
        asked: AskedOf::Offered(requests),
    };
    let there = "web 0 0 0 0 0 0 0 0.5 0 0 0 0 0 0 0 get 0 0 0 0 0 scan:batch 1 0 0.9 100 100\n";
    let hear = |rates: &mut Rates, text: &str| {
        rates.hear(&entries(&[("b", text)]), |front| front == "b", &house);
        house.0.lock()["web"].contracts.clone()
    };
    let mut kept = BTreeMap::new();
    for second in 1..=6 {
        let mut seen = seen(100 * second, 0);
        seen.contracts = vec![contract("get", 100 * second), contract("scan:batch", 0)];
        rates.tell(&[seen], 2, 1_000_000_000 * second);
        kept = hear(&mut rates, there);
    }
    assert!(kept["get"] > 0.98 && kept["scan:batch"] < 0.11, "{kept:?}");
    // Whoever hears of nobody keeps what it has.
    rates.alone(&house);
    assert_eq!(house.0.lock()["web"].contracts, kept);
    // One of an older version, which says nothing of it, claims none.
    let old = hear(&mut rates, "web 0 0 0 0 0 0 0 0.5 0 0 0 0 0 0 0\n");
    assert!(old["get"] > 0.98, "{old:?}");
}

/// Of 100 a second that are promised this front serves 30 and could serve more; the other serves 20
/// at first, and wants no more.
#[test]
fn a_throughput_is_aimed_at_where_more_of_it_is_wanted() {
    let (mut rates, house) = (Rates::default(), Heard::default());
    let mut second = 0;
    let mut hear = |under_way_ns: f64, waits_ns, there: &str| {
        for _ in 0..8 {
            second += 1;
            let mut seen = seen(30 * second, 0);
            let served = Served {
                requests: (30 * second) as f64,
                under_way_ns: under_way_ns * second as f64,
            };
            seen.contracts = vec![ContractSeen {
                name: "throughput.get".into(),
                per_s: 100.0,
                asked: AskedOf::Served(served, waits_ns),
            }];
            rates.tell(&[seen], 2, 1_000_000_000 * second);
            let text = format!("web 0 0 0 0 0 0 0 0.5 0 0 0 0 0 0 0 throughput.get {there} 9 9\n");
            rates.hear(&entries(&[("b", &text)]), |front| front == "b", &house);
        }
        house.0.lock()["web"].contracts["throughput.get"]
    };
    // Neither wants more: what is not served is even.
    let part = hear(0.1e9, 0, "0.2 0 0.2");
    assert!((part - 0.55).abs() < 0.01, "{part}");
    let part = hear(7e9, 0, "0.2 0 0.2");
    assert!((part - 0.8).abs() < 0.01, "{part}");
    // One request waits all the time.
    let part = hear(7e9, 2_000_000_000, "0.2 1 0.45");
    assert!((part - 0.55).abs() < 0.01, "{part}");
    // It is all served together: nobody takes anything from anybody.
    let part = hear(7e9, 0, "0.7 1 0.7");
    assert!((part - 0.3).abs() < 0.01, "{part}");
}
