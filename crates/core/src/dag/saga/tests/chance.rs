//! Random completions and failures, news late, twice and in any order, a crash at every step: undone is exactly what was
//! done, in reverse, each once.

use proptest::prelude::*;

use super::world::{UNDO, World};
use crate::dag::RunState;
use crate::job::{JobState, Reason};

/// What may happen next, as the draw says.
#[derive(Clone, Debug)]
enum Event {
    Submit { undo: bool },
    End { at: usize, how: u8 },
    Hear { at: usize },
    Late { at: usize },
    Crash,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => any::<bool>().prop_map(|undo| Event::Submit { undo }),
        5 => (any::<usize>(), 0..12_u8).prop_map(|(at, how)| Event::End { at, how }),
        5 => any::<usize>().prop_map(|at| Event::Hear { at }),
        2 => any::<usize>().prop_map(|at| Event::Late { at }),
        1 => Just(Event::Crash),
    ]
}

#[derive(Default)]
struct Chaos {
    world: World,
    /// Jobs that have not ended, and those that the saga has not heard of since they changed.
    open: Vec<String>,
    unheard: Vec<String>,
    /// What was done, in the order in which the saga heard of it.
    done: Vec<String>,
}

impl Chaos {
    fn happen(&mut self, event: &Event) {
        match event {
            Event::Submit { undo } => {
                let id = format!("j{}", self.world.jobs.len());
                let job = super::world::plain_job(&id, undo.then_some(UNDO), self.world.now);
                self.world.jobs.insert(id.clone(), job);
                self.open.push(id.clone());
                self.unheard.push(id);
            }
            Event::End { at, how } if !self.open.is_empty() => {
                let id = self.open.remove(at % self.open.len());
                self.end(&id, *how);
            }
            Event::Hear { at } if !self.unheard.is_empty() => {
                let at = at % self.unheard.len();
                self.hear(at);
            }
            Event::Late { at } => self.finish_late(*at),
            Event::Crash => self.world.crash(),
            Event::End { .. } | Event::Hear { .. } => {}
        }
    }

    fn end(&mut self, id: &str, how: u8) {
        let (state, reason) = match how {
            0 => (JobState::Failed, Some(Reason::Fatal)),
            1 => (JobState::Failed, Some(Reason::Failed)),
            2 => (JobState::Cancelled, Some(Reason::Cancelled)),
            3 => (JobState::OutputQuarantined, Some(Reason::OutputQuarantined)),
            _ => (JobState::Succeeded, None),
        };
        self.world.settle(id, state, reason);
        self.unheard.push(id.to_owned());
    }

    /// What had ended some other way was done all the same.
    fn finish_late(&mut self, at: usize) {
        let may = |state| matches!(state, JobState::Cancelled | JobState::Failed);
        let jobs = &self.world.jobs;
        let over: Vec<String> = jobs.iter().filter(|(_, job)| may(job.state())).map(|(id, _)| id.clone()).collect();
        if let Some(id) = over.get(at % over.len().max(1)) {
            self.world.finish_late(id);
            self.unheard.push(id.clone());
        }
    }

    /// Of this one, and of the same again.
    fn hear(&mut self, at: usize) {
        let id = self.unheard.remove(at);
        let job = &self.world.jobs[&id];
        let done = job.is_done_late() || matches!(job.life.state, JobState::Succeeded | JobState::OutputQuarantined);
        if done && job.request.compensation.is_some() && !self.done.contains(&id) {
            self.done.push(id.clone());
        }
        let news = self.world.news_of(&id);
        self.world.hear(&[news.clone(), news]);
        self.world.hear(&[self.world.news_of(&id)]);
    }

    /// Everything ends, is heard of and undone, with a crash before each step.
    fn finish(&mut self) {
        for id in std::mem::take(&mut self.open) {
            let stopped = self.world.stopped.contains(&id);
            self.end(&id, if stopped { 2 } else { 9 });
        }
        while !self.unheard.is_empty() {
            self.hear(0);
        }
        while let Some(id) = self.world.open_undos().first().map(|id| (*id).to_owned()) {
            self.world.crash();
            self.world.end_undo(&id, JobState::Succeeded);
        }
    }
}

proptest! {
    #[test]
    fn undone_is_exactly_what_was_done_in_reverse_and_each_once(events in proptest::collection::vec(event(), 1..60)) {
        let mut chaos = Chaos::default();
        chaos.happen(&Event::Submit { undo: true });
        for event in &events {
            chaos.happen(event);
        }
        chaos.finish();
        let world = &chaos.world;
        if world.run().head.closing.is_none() {
            prop_assert_eq!(world.state(), RunState::Running);
            prop_assert!(world.undos.is_empty());
            return Ok(());
        }
        prop_assert_eq!(world.state(), RunState::Compensated);
        let (mut undone, mut done) = (world.undone(), chaos.done.iter().map(String::as_str).collect::<Vec<_>>());
        undone.sort_unstable();
        done.sort_unstable();
        prop_assert_eq!(undone, done);
    }
}
