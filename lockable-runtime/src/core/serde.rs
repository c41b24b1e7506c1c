//! What serialized data have of this crate's types: keys, fencing tokens, tickets and request ids.
//! Written by hand, because a derive costs every user more to build than this.

use serde_core::de::{Deserialize, Deserializer, Error};
use serde_core::ser::{Serialize, Serializer};

use crate::core::request_id::RequestId;
use crate::core::types::key::LockKey;
use crate::core::types::ticket::Ticket;
use crate::core::types::token::FencingToken;

/// As its number.
impl Serialize for FencingToken {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::from(*self))
    }
}

/// From a number that is not negative.
impl<'de> Deserialize<'de> for FencingToken {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(Self::new)
    }
}

/// As its text.
impl Serialize for LockKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// From a text that can be a key, as [`LockKey::new`] checks.
impl<'de> Deserialize<'de> for LockKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// As its text, which is a [secret](Ticket#its-text-is-a-secret).
impl Serialize for Ticket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.expose_secret())
    }
}

/// From the text of a ticket.
impl<'de> Deserialize<'de> for Ticket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// As its text.
impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// From any text, which is cleaned as by [`RequestId::new`].
impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    fn back<T: Serialize + for<'de> Deserialize<'de>>(value: &T) -> T {
        from_value(to_value(value).unwrap()).unwrap()
    }

    fn refused<T: for<'de> Deserialize<'de>>(value: Value) -> String {
        from_value::<T>(value).err().unwrap().to_string()
    }

    #[test]
    fn a_fencing_token_is_a_number_and_comes_back() {
        for number in [0, 1_750_000_000_000_001, u64::MAX] {
            let token = FencingToken::new(number);
            assert_eq!(to_value(token).unwrap(), json!(number));
            assert_eq!(back(&token), token);
        }
        for other in [json!(-1), json!(1.5), json!("7"), json!(null)] {
            assert!(refused::<FencingToken>(other).contains("expected u64"));
        }
    }

    #[test]
    fn a_key_is_text_checked_when_read() {
        let key = LockKey::from_static("{user}:7");
        assert_eq!(to_value(&key).unwrap(), json!("{user}:7"));
        assert_eq!(back(&key), key);
        assert!(refused::<LockKey>(json!("")).contains("the key is empty"));
        assert!(refused::<LockKey>(json!("a}b")).contains("only as a hash tag"));
        assert!(refused::<LockKey>(json!(7)).contains("expected a string"));
    }

    #[test]
    fn a_ticket_is_text_checked_when_read() {
        let parts = "00000000000000ff:7:1f0c9a57d2e84b36.1764000000123456:k%3A7";
        let text = format!("lockable-ticket:2:b4fe791f9c77ab40:{parts}");
        let ticket: Ticket = text.parse().unwrap();
        assert_eq!(to_value(&ticket).unwrap(), json!(text));
        assert_eq!(back(&ticket), ticket);
        assert!(refused::<Ticket>(json!("k:7")).contains("no ticket"));
    }

    #[test]
    fn a_request_id_is_text_cleaned_when_read() {
        let id = RequestId::new("checkout 7");
        assert_eq!(to_value(&id).unwrap(), json!("checkout 7"));
        assert_eq!(back(&id), id);
        assert_eq!(from_value::<RequestId>(json!(" a\nb ")).unwrap().as_str(), "a_b");
    }
}
