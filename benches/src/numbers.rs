//! Numbers for the tables.

/// The middle one of some numbers, or what is midway between the middle two.
#[must_use]
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len() % 2 == 1 {
        numbers[middle]
    } else {
        numbers[middle - 1].midpoint(numbers[middle])
    }
}

/// The median of some numbers, with the least and the most; a dash where there is none.
#[must_use]
pub fn spread(numbers: impl IntoIterator<Item = f64>) -> String {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    match (numbers.first(), numbers.last()) {
        (Some(least), Some(most)) => {
            let middle = three_digits(median(numbers.iter().copied()));
            format!("{middle} ({} to {})", three_digits(*least), three_digits(*most))
        }
        _ => "–".to_owned(),
    }
}

/// The median of some numbers, with their quartiles; a dash where there is none.
#[must_use]
pub fn quartiles(numbers: impl IntoIterator<Item = f64>) -> String {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    if numbers.is_empty() {
        return "–".to_owned();
    }
    numbers.sort_by(f64::total_cmp);
    let lower = numbers[numbers.len() / 4];
    let upper = numbers[numbers.len() - 1 - numbers.len() / 4];
    let middle = three_digits(median(numbers));
    format!("{middle} ({} to {})", three_digits(lower), three_digits(upper))
}

/// A number for a table, with three significant digits.
#[must_use]
pub fn three_digits(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}
