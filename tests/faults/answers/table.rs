//! Each answer in each place.
//!
//! Goal: an answer of a node that a verb does not follow, follows for ever, or takes for another one.
//! Method: the answer is given in the place of that to each request of each verb. What the caller gets is compared
//! with what is expected. After that, another lock of the slot is still held, the next fencing token is larger,
//! and nothing is left behind.

use std::sync::Arc;
use std::time::Duration;

use lockable_runtime::LockError;
use lockable_tests::{Cue, wait};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::given::Given;
use super::places::Place;
use super::rows::{COUNTED, ROWS, Row};
use super::scene::{Scene, Stages};
use crate::support::{COMMAND, LONG, now};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_answer_in_each_place_has_its_outcome() {
    // So few that each is in time on a busy machine; there may be more of those that mostly wait.
    let at_once = [2, 6].map(|count| Arc::new(Semaphore::new(count)));
    let stages = Arc::new(Stages::default());
    let mut cases = JoinSet::new();
    for (row, Row { given, places, .. }) in ROWS.iter().enumerate() {
        for (given, place) in places.iter().map(|place| (*given, *place)) {
            let is_long = ROWS[row].is_long(place);
            let at_once = Arc::clone(&at_once[usize::from(is_long)]);
            let stages = Arc::clone(&stages);
            cases.spawn(async move {
                let _permit = at_once.acquire().await.unwrap();
                let deadline = if is_long { COMMAND } else { LONG };
                let word = tokio::spawn(run(stages, given, place, deadline)).await;
                (row, place, word.unwrap_or_else(|_| "panicked".to_owned()))
            });
        }
    }
    let mut mistakes = Vec::new();
    while let Some(case) = cases.join_next().await {
        let (row, place, found) = case.unwrap();
        let expected = ROWS[row].expected(place);
        if found != expected {
            mistakes.push(format!("{:?} {place:?}: {found}, not {expected}", ROWS[row].given));
        }
    }
    mistakes.sort();
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

async fn run(stages: Arc<Stages>, given: Given, place: Place, deadline: Duration) -> String {
    let mut scene = Scene::begin_on(stages.take(), deadline).await;
    let ready = place.prepare(&mut scene).await;
    let (stub_node, cue) = place.cue(&scene);
    let before = scene.stub_nodes.count(stub_node, &cue);
    given.play(&scene, stub_node, cue.clone());
    let begun = now();
    let outcome = wait::ends(place.act(&scene, &ready)).await;
    let elapsed = begun.elapsed();
    let asked = scene.stub_nodes.count(stub_node, &cue) - before;
    let word = match &outcome {
        Ok(word) => word.clone(),
        Err(error) => word_of(error, elapsed > deadline / 2 && !COUNTED.contains(&place)),
    };
    if let (Given::Garbled(_), Err(error)) = (given, &outcome) {
        let server = scene.stub_nodes.addr(stub_node).to_string();
        assert!(error.to_string().contains(&server), "{given:?} {place:?}: {error}");
    }
    assert!(asked <= given.most_requests(), "{given:?} {place:?}: {asked} requests");
    if matches!(given, Given::Asks | Given::Split) {
        let counted = Cue::of(["EVALSHA", "EVAL", "INCR"]).about(scene.fence());
        let led_astray = scene.stub_nodes.count(1, &counted);
        assert_eq!(led_astray, 0, "{place:?}: the counter is where it was");
    }
    if given.is_over_with_the_case() {
        scene.stub_nodes.take_back();
    }
    scene.stub_nodes.take_asking(1, true);
    place.end(&scene, ready).await;
    scene.other.leave(&scene.attempt).await.unwrap();
    scene.other.release(&scene.attempt, None, Duration::ZERO).await.unwrap();
    scene.is_clean().await;
    stages.give_back(scene);
    word
}

fn word_of(error: &LockError, is_late: bool) -> String {
    let text = error.to_string();
    match (error.is_unavailable(), is_late) {
        _ if text.contains("is unknown") => "unsure".to_owned(),
        (true, true) => "late".to_owned(),
        (true, false) => "fails".to_owned(),
        (false, _) => text,
    }
}
