//! A number, perhaps with a fraction, followed by a unit.

/// Digits of a number and the unit after it, not yet put together.
pub(super) struct Parts<'a> {
    /// All digits without the point.
    digits: u64,
    /// How many of them were behind the point.
    decimals: u32,
    /// What follows, without the space between.
    pub(super) unit: &'a str,
}

/// Splits `"1.5 MiB"` into its number and its unit. `_` may group digits.
pub(super) fn split<'a>(text: &'a str, example: &str) -> Result<Parts<'a>, String> {
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !matches!(c, '0'..='9' | '.' | '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    if trimmed.starts_with(['-', '+']) {
        return Err(format!(
            "{text:?} has a sign; write it without, such as {example:?}"
        ));
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let plain = |part: &str| part.starts_with(|c: char| c.is_ascii_digit()) && !part.contains('.');
    if !plain(whole) || !plain(fraction) {
        return Err(format!(
            "{text:?} does not start with a number; write it as in {example:?}"
        ));
    }
    let fraction = fraction.replace('_', "");
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{}{fraction}", whole.replace('_', ""));
    let digits = digits
        .parse()
        .map_err(|_| format!("{text:?} has more digits than can be held"))?;
    let decimals = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    Ok(Parts {
        digits,
        decimals,
        unit: unit.trim_start(),
    })
}

impl Parts<'_> {
    /// The number times `scale`, if that is a whole number that fits.
    pub(super) fn times(&self, scale: u64, text: &str, smallest: &str) -> Result<u64, String> {
        let divisor = 10u128.checked_pow(self.decimals).unwrap_or(u128::MAX);
        let product = u128::from(self.digits) * u128::from(scale);
        if product % divisor != 0 {
            return Err(format!(
                "{text:?} is not a whole number of {smallest}; write fewer decimals"
            ));
        }
        u64::try_from(product / divisor).map_err(|_| format!("{text:?} is too large to be held"))
    }
}

/// The largest unit that divides `value`, and how many of it; the last unit must be 1.
pub(super) fn largest(value: u64, units: &[(&'static str, u64)]) -> (u64, &'static str) {
    let (unit, scale) = units
        .iter()
        .find(|(_, scale)| value != 0 && value % scale == 0)
        .or(units.last())
        .copied()
        .unwrap_or(("", 1));
    (value / scale, unit)
}

/// Finds a unit by its exact spelling; the error suggests the right one where only capitals differ.
pub(super) fn scale_of(
    unit: &str,
    units: &[(&str, u64)],
    text: &str,
    what: &str,
) -> Result<u64, String> {
    if let Some((_, scale)) = units.iter().find(|(name, _)| *name == unit) {
        return Ok(*scale);
    }
    let names: Vec<&str> = units
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.is_empty())
        .collect();
    if unit.is_empty() {
        return Err(format!(
            "{text:?} has no unit; add {what}: {}",
            names.join(", ")
        ));
    }
    let begins = |name: &&&str| name.to_lowercase().starts_with(&unit.to_lowercase());
    let alike = names
        .iter()
        .find(|name| name.eq_ignore_ascii_case(unit))
        .or(names.iter().find(begins));
    let hint = alike
        .map(|name| format!("; did you mean {name:?}?"))
        .unwrap_or_default();
    Err(format!(
        "{unit:?} in {text:?} is not {what}: {}{hint}",
        names.join(", ")
    ))
}
