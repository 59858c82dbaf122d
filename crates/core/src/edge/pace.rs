//! How long attempts of a topic run, roughly: only quick ones are worth sending ahead of a free slot.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ids::Topic;

/// A topic that runs longer than this on average gains nothing from being sent ahead, and its jobs would wait behind one
/// worker while another is free.
const QUICK: Duration = Duration::from_secs(1);
/// Topics remembered; above it all are learnt anew.
const TOPICS_MAX: usize = 10_000;
/// The weight of the newest run in the average, as its divisor.
const MEMORY: u32 = 8;

#[derive(Debug, Default)]
pub(super) struct TopicPace(BTreeMap<Topic, Duration>);

impl TopicPace {
    pub(super) fn note(&mut self, topic: &Topic, ran: Duration) {
        if let Some(mean) = self.0.get_mut(topic) {
            *mean = *mean - *mean / MEMORY + ran / MEMORY;
            return;
        }
        if self.0.len() >= TOPICS_MAX {
            self.0.clear();
        }
        self.0.insert(topic.clone(), ran);
    }

    /// Nothing is known of a topic that never ran here: it counts as slow.
    pub(super) fn is_quick(&self, topic: &Topic) -> bool {
        self.0.get(topic).is_some_and(|mean| *mean < QUICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_quick_once_its_runs_are() {
        let (topic, mut pace) = (Topic::from("t"), TopicPace::default());
        assert!(!pace.is_quick(&topic));
        pace.note(&topic, Duration::from_secs(5));
        assert!(!pace.is_quick(&topic));
        for _ in 0..20 {
            pace.note(&topic, Duration::from_millis(1));
        }
        assert!(pace.is_quick(&topic));
        pace.note(&topic, Duration::from_secs(60));
        assert!(!pace.is_quick(&topic), "one slow run is a warning");
    }
}
