//! The input of a job.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::JobError;

/// The job's input: JSON in canonical form, exactly the bytes that were hashed and judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload(Bytes);

impl Payload {
    pub(crate) fn new(json: Bytes) -> Self {
        Self(if json.is_empty() { Bytes::from_static(b"null") } else { json })
    }

    /// Reads the payload as `T`. A mismatch is a fatal error that names the field, because another attempt would read the
    /// same bytes.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, JobError> {
        let mut reader = serde_json::Deserializer::from_slice(&self.0);
        let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let field = if path == "." { String::new() } else { format!("field `{path}`: ") };
            JobError::fatal(format_args!("bad payload: {field}{}", error.inner()))
        })?;
        reader.end().map_err(|error| JobError::fatal(format_args!("bad payload: {error}")))?;
        Ok(value)
    }

    /// The JSON text.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

/// Serialises the JSON text unchanged, so that a handler can return its input.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ErrorProbe {
        #[expect(dead_code, reason = "only the errors matter here")]
        ms: u64,
    }

    fn refusal(json: &'static str) -> String {
        Payload::new(Bytes::from_static(json.as_bytes())).json::<ErrorProbe>().map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn a_bad_payload_names_the_field() {
        assert!(
            refusal(r#"{"ms":"x"}"#).starts_with("bad payload: field `ms`: invalid type"),
            "{}",
            refusal(r#"{"ms":"x"}"#)
        );
        assert!(refusal(r#"{"ms":1,"mss":2}"#).contains("unknown field `mss`"));
        assert!(refusal("{}").contains("missing field `ms`"));
        assert!(refusal("").contains("bad payload"));
    }

    #[test]
    fn a_payload_is_given_on_unchanged() {
        let text = r#"{"b": 1,  "a":[1.0]}"#;
        let payload = Payload::new(Bytes::from_static(text.as_bytes()));
        assert_eq!(serde_json::to_string(&payload).unwrap(), text);
    }
}
