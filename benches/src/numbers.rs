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
    between(numbers, |_| 0)
}

/// The median of some numbers, with their quartiles; a dash where there is none.
#[must_use]
pub fn quartiles(numbers: impl IntoIterator<Item = f64>) -> String {
    between(numbers, |count| count / 4)
}

/// The median, with the smallest and the largest of those that are left when so many are left out at each end.
fn between(numbers: impl IntoIterator<Item = f64>, left_out: impl Fn(usize) -> usize) -> String {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    let middle = three_digits_of_median(&numbers);
    let least = left_out(numbers.len());
    match (numbers.get(least), numbers.iter().nth_back(least)) {
        (Some(least), Some(most)) => {
            format!("{middle} ({} to {})", three_digits(*least), three_digits(*most))
        }
        _ => middle,
    }
}

/// The median alone; a dash where there is none.
#[must_use]
pub fn three_digits_of_median(numbers: &[f64]) -> String {
    if numbers.is_empty() {
        "–".to_owned()
    } else {
        three_digits(median(numbers.iter().copied()))
    }
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
