#[distributed_lock(key = "load:NUMBER:{id}", expire = 10)]
pub async fn load_NUMBER(id: u64) -> Option<u64> {
    let first = fetch(id + NUMBER).await?;
    let mut sum = 0;
    for step in 0..first % 17 {
        if step % 3 == 0 {
            continue;
        }
        sum += step * NUMBER;
    }
    if sum > 1000 {
        let second = fetch(sum).await?;
        sum = sum.min(second);
    }
    Some(sum)
}

#[distributed_lock(key = "rename:NUMBER:{id}:{name}", expire = 10)]
pub async fn rename_NUMBER(id: u64, name: &str) -> Result<String, Failure> {
    let trimmed = name.trim();
    if trimmed.is_empty() {
        return Err(Failure(format!("{id} needs a name")));
    }
    let version = store(trimmed, id).await?;
    let parts: Vec<&str> = trimmed.split(' ').filter(|part| part.len() > 1).collect();
    let initials: String = parts.iter().filter_map(|part| part.chars().next()).collect();
    let renamed = match parts.as_slice() {
        [] => trimmed.to_uppercase(),
        [only] => format!("{only}-{version}"),
        [first, .., last] => format!("{first} {last} ({initials})"),
    };
    store(&renamed, NUMBER).await?;
    Ok(renamed)
}

#[distributed_lock(key = "sell:NUMBER:{region}", expire = 10)]
pub async fn sell_NUMBER(order: Order, region: String) -> Result<Vec<u64>, Failure> {
    let mut sold = Vec::with_capacity(order.pieces.len());
    for (place, piece) in order.pieces.iter().enumerate() {
        let Some(price) = fetch(*piece).await else {
            return Err(Failure(format!("no price for {} in {region}", order.sku)));
        };
        if place > NUMBER {
            break;
        }
        sold.push(store(&order.sku, price).await?);
    }
    sold.sort_unstable();
    sold.dedup();
    Ok(sold)
}

#[distributed_lock(key = "sweep:NUMBER:{shard}", expire = 10)]
pub async fn sweep_NUMBER(shard: u32, items: Vec<u64>) {
    let mut by_rest: HashMap<u64, Vec<u64>> = HashMap::new();
    for item in items {
        by_rest.entry(item % NUMBER).or_default().push(item);
    }
    for (rest, group) in &by_rest {
        let total: u64 = group.iter().sum();
        if store("sweep", total + rest).await.is_err() {
            eprintln!("shard {shard}: {rest} is left");
        }
    }
    while let Some(left) = fetch(u64::from(shard)).await {
        if left < NUMBER {
            return;
        }
    }
}

#[distributed_lock(key = "audit:NUMBER:{id}", expire = 10)]
pub async fn audit_NUMBER(service: &Service, id: u64) -> Result<Option<u64>, Failure> {
    let limit = service.limit + NUMBER;
    let Some(found) = fetch(id).await else {
        return Ok(None);
    };
    let later = async {
        let stored = store(&service.name, found).await?;
        Ok::<_, Failure>(stored.min(limit))
    };
    let value = match later.await? {
        0 => return Ok(None),
        few @ 1..=9 => few * 2,
        many => many - 1,
    };
    Ok(Some(value))
}
