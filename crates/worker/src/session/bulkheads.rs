//! Bulkheads: groups of topics with slots of their own. Each is a session of its own, so that the server knows how much of
//! each fits, and a slow group takes no slot from another.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lockgate_contract::names::check_name;
use lockgate_proto::v1::Hello;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{GpuLoad, Setup, run};
use crate::error::WorkerError;
use crate::registry::{Registry, means};

/// Topics with slots of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bulkhead {
    pub name: String,
    pub slots: u32,
    /// A trailing `*` takes every topic with that beginning.
    pub topics: Vec<String>,
}

impl Bulkhead {
    /// Whether handlers of a topic or pattern belong to the group.
    fn takes(&self, topic: &str) -> bool {
        self.topics.iter().any(|topics| means(topics, topic))
    }

    /// What is wrong with the group, given those before it.
    pub(crate) fn faults(&self, before: &[Self], registry: &Registry) -> Vec<String> {
        let Self { name, slots, .. } = self;
        let mut faults = Vec::new();
        if check_name(name).is_err() || name.contains('.') {
            faults.push(format!("{name:?} is no name for a group of topics"));
        }
        if before.iter().any(|other| other.name == *name) {
            faults.push(format!("the group {name:?} is there twice"));
        }
        if *slots == 0 {
            faults.push(format!("the group {name:?} has no slots"));
        }
        if !registry.topics().iter().any(|topic| self.takes(topic)) {
            faults.push(format!("the group {name:?} names no topic that has a handler"));
        }
        faults.extend(self.shared(registry).map(|(topic, pattern)| {
            format!("the group {name:?} takes {topic:?}, which the handler of {pattern:?} outside of it would be given too")
        }));
        faults
    }

    /// Topics of the group that a pattern outside of it also matches: the server would send them to either session.
    fn shared(&self, registry: &Registry) -> impl Iterator<Item = (String, String)> {
        let (own, others): (Vec<String>, Vec<String>) = registry.topics().into_iter().partition(|topic| self.takes(topic));
        let fits = |pattern: &str, topic: &str| pattern.strip_suffix('*').is_some_and(|prefix| topic.starts_with(prefix));
        own.into_iter().filter_map(move |topic| {
            let pattern = others.iter().find(|pattern| fits(pattern, &topic))?;
            Some((topic, pattern.clone()))
        })
    }
}

impl Setup {
    /// One setup per group, and one for the topics that no group names. The first group that matches a topic gets it.
    pub(crate) fn split(self, groups: &[Bulkhead]) -> Vec<Self> {
        if groups.is_empty() {
            return vec![self];
        }
        let Self { profile, mut registry, addresses, dial, journal, drain_timeout, gpu_load, spans, adaptive } = self;
        let mut gpu = shared(gpu_load);
        let mut setups = Vec::with_capacity(groups.len() + 1);
        for group in groups {
            let own = registry.split_off(|topic| group.takes(topic));
            if own.topics().is_empty() {
                continue;
            }
            let profile = Hello {
                session: format!("{}.{}", profile.session, group.name),
                worker_id: format!("{}.{}", profile.worker_id, group.name),
                topics: own.topics(),
                slots: group.slots,
                ..profile.clone()
            };
            setups.push(Self {
                profile,
                registry: own,
                addresses: addresses.clone(),
                dial: dial.clone(),
                journal: journal.as_deref().map(|path| beside(path, &group.name)),
                drain_timeout,
                gpu_load: gpu(),
                spans: spans.clone(),
                adaptive: None,
            });
        }
        let topics = registry.topics();
        if !topics.is_empty() {
            let profile = Hello { topics, ..profile };
            let gpu_load = gpu();
            setups.push(Self { profile, registry, addresses, dial, journal, drain_timeout, gpu_load, spans, adaptive });
        }
        setups
    }
}

/// Every session reads the one meter.
fn shared(gpu: Option<GpuLoad>) -> impl FnMut() -> Option<GpuLoad> {
    let gpu = gpu.map(|read| Arc::new(Mutex::new(read)));
    move || {
        let gpu = gpu.clone()?;
        let read: GpuLoad = Box::new(move || (gpu.lock())());
        Some(read)
    }
}

/// Each session has a journal of its own, because it reports only its own results.
fn beside(path: &Path, group: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(group);
    name.into()
}

/// Runs all sessions until `shutdown` is ready or all were told to leave. If one is refused, the others drain, and the
/// refusal is returned.
pub(crate) async fn run_all(setups: Vec<Setup>, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
    let (stop, stopping) = watch::channel(false);
    let session = |setup: Setup| {
        let mut stopping = stopping.clone();
        run(setup, async move {
            // A dropped sender also means stop.
            let _ = stopping.wait_for(|stop| *stop).await;
        })
    };
    let mut sessions: FuturesUnordered<_> = setups.into_iter().map(session).collect();
    let mut answer = Ok(());
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown, if !*stop.borrow() => {
                stop.send_replace(true);
            }
            ended = sessions.next() => match ended {
                None => return answer,
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    stop.send_replace(true);
                    answer = answer.and(Err(error));
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::registry::Route;
    use crate::session::Grpc;
    use lockgate_tls::grpc::Bearer;

    fn group(name: &str, topics: &[&str]) -> Bulkhead {
        Bulkhead { name: name.to_owned(), slots: 3, topics: topics.iter().map(|topic| (*topic).to_owned()).collect() }
    }

    fn registry(topics: &[&str]) -> Registry {
        let mut registry = Registry::default();
        for topic in topics {
            registry.insert((*topic).to_owned(), Route::new(|_, payload| async { Ok(payload) }));
        }
        registry
    }

    fn setup(topics: &[&str]) -> Setup {
        let registry = registry(topics);
        let profile = Hello {
            session: "s".to_owned(),
            worker_id: "w".to_owned(),
            slots: 64,
            topics: registry.topics(),
            ..Hello::default()
        };
        Setup {
            profile,
            registry,
            addresses: Vec::new(),
            dial: Arc::new(Grpc { bearer: Bearer::default() }),
            journal: Some("/tmp/journal".into()),
            drain_timeout: Duration::ZERO,
            gpu_load: Some(Box::new(|| Some(7))),
            spans: None,
            adaptive: None,
        }
    }

    #[test]
    fn every_topic_is_served_once_by_the_first_group_that_names_it() {
        let groups = [group("io", &["http.*", "mail.send"]), group("late", &["http.get", "cpu.*"])];
        let setups = setup(&["cpu.hash", "http.get", "http.put", "mail.send", "mail.open"]).split(&groups);
        let said: Vec<_> = setups
            .iter()
            .map(|setup| (setup.profile.session.as_str(), setup.profile.slots, setup.profile.topics.join(" ")))
            .collect();
        let expected = [
            ("s.io", 3, "http.get http.put mail.send".to_owned()),
            ("s.late", 3, "cpu.hash".to_owned()),
            ("s", 64, "mail.open".to_owned()),
        ];
        assert_eq!(said, expected);
        let files: Vec<_> = setups.iter().filter_map(|setup| setup.journal.clone()).collect();
        assert_eq!(files, ["/tmp/journal.io", "/tmp/journal.late", "/tmp/journal"].map(PathBuf::from));
        for mut setup in setups {
            assert_eq!(setup.gpu_load.as_mut().map(|read| read()), Some(Some(7)), "each reads the meter");
        }
    }

    #[test]
    fn where_every_topic_has_a_group_there_is_no_rest() {
        let setups = setup(&["a.x", "b.x"]).split(&[group("a", &["a.*"]), group("b", &["b.*"])]);
        assert_eq!(setups.iter().map(|setup| &*setup.profile.worker_id).collect::<Vec<_>>(), ["w.a", "w.b"]);
        assert_eq!(setup(&["a.x"]).split(&[]).len(), 1);
    }

    #[test]
    fn a_group_that_makes_no_sense_is_said() {
        let known = registry(&["a.x"]);
        let io = group("io", &["a.*"]);
        assert_eq!(io.faults(&[], &known), [""; 0]);
        assert!(io.faults(std::slice::from_ref(&io), &known)[0].contains("twice"));
        let wrong = Bulkhead { slots: 0, ..group("a b", &["c"]) };
        assert_eq!(wrong.faults(&[], &known).len(), 3, "{:?}", wrong.faults(&[], &known));
    }
}
