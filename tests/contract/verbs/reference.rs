//! The backend in memory, which the others are compared with. Its clock is paused.

use std::array;
use std::collections::HashMap;
use std::time::Duration;

use lockable_runtime::__internals::MemoryStore;

use super::KEYS;
use super::side::Side;
use super::state::{Life, Place, State};
use super::step::What;
use crate::fixture::{Fixture, Memory};

pub(super) struct Reference {
    pub(super) side: Side,
    store: MemoryStore,
    _fixture: Memory,
}

impl Reference {
    pub(super) fn start() -> Self {
        let fixture = Memory::start();
        let url = fixture.url();
        let store = MemoryStore::open(url.strip_prefix("memory://").unwrap()).unwrap();
        Self { side: Side::open(&url, fixture.runtime()), store, _fixture: fixture }
    }

    /// Begins a sequence about other keys.
    pub(super) fn clear(&mut self, keys: [String; KEYS]) {
        self.look(MemoryStore::flush);
        self.side.clear(keys);
    }

    pub(super) fn pass(&self, time: Duration) {
        self.side.runtime.block_on(tokio::time::advance(time));
    }

    /// What is done to the store itself.
    pub(super) fn intervene(&self, what: &What) {
        let keys = &self.side.keys;
        self.look(|store| match what {
            What::PutForeign { key, life, .. } => {
                store.put_foreign(&keys[*key], life.unwrap_or(Duration::MAX));
            }
            What::Delete { key } => store.delete(&keys[*key]),
            What::Flush => store.flush(),
            _ => {}
        });
    }

    pub(super) fn state(&self) -> State {
        let lives: HashMap<_, _> = self.look(MemoryStore::keyspace).into_iter().collect();
        let place = |key: usize| {
            let name = &self.side.keys[key];
            let lock = lives.get(name).map(|life| (self.side.holder(key), Life::from(*life)));
            let queue = self.store.queue(name);
            let queue = queue.iter().map(|owner| self.side.number(owner)).collect();
            Place { lock, queue }
        };
        State { places: array::from_fn(place), others: Vec::new() }
    }

    /// The last token that was counted for this key.
    pub(super) fn fence(&self, key: usize) -> Option<u64> {
        self.look(|store| store.fence(&self.side.keys[key]))
    }

    /// Inside of the runtime whose clock is paused.
    fn look<T>(&self, look: impl FnOnce(&MemoryStore) -> T) -> T {
        self.side.runtime.block_on(async { look(&self.store) })
    }
}
