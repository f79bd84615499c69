//! Dates as RFC 3339 writes them, in UTC.

const DAY_S: u64 = 86_400;

/// `seconds` since 1970 as a date and a time. The civil calendar by days in eras of 400 years that
/// begin in March (Howard Hinnant, chrono-compatible low-level date algorithms).
pub(super) fn text(seconds: u64) -> String {
    let (days, second) = (seconds / DAY_S, seconds % DAY_S);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The inverse of [`text`], for dates from 1970 on.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let numbers: Vec<u64> = text
        .split(['-', 'T', ':', 'Z'])
        .filter_map(|part| part.parse().ok())
        .collect();
    let [year, month, day, hour, minute, second] = numbers[..] else {
        return None;
    };
    let known =
        (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !known || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let days =
        year / 400 * 146_097 + year % 400 * 365 + year % 400 / 4 - year % 400 / 100 + day_of_year;
    let found = (days - 719_468) * DAY_S + hour * 3_600 + minute * 60 + second;
    (self::text(found) == text).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        for (known, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_210_096, "2024-02-29T12:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(text(known), date);
            assert_eq!(seconds(date), Some(known));
        }
        for bad in [
            "",
            "2024",
            "2023-02-29T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2024-01-01T24:00:00Z",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
