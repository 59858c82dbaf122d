//! What holds whatever happens: random graphs, random ends, news late, twice and in any order, a crash at every step.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Map;

use super::super::super::{NodeKey, NodeRun, Run, UndoState};
use super::super::{RunCommand, RunMessage, RunPlanner, RunTransition};
use super::random::{Draw, Flavour, graph};
use super::*;
use crate::ids::{ActorId, JobId, RunId};
use crate::job::JobState;

const ENDS: [JobState; 8] = [
    JobState::Succeeded,
    JobState::Succeeded,
    JobState::Succeeded,
    JobState::Failed,
    JobState::Timeout,
    JobState::Denied,
    JobState::Cancelled,
    JobState::OutputQuarantined,
];
const RUN_ENDS: [RunState; 4] =
    [RunState::Succeeded, RunState::SucceededWithFailures, RunState::Failed, RunState::Compensated];

/// A run with everything that can happen to it.
struct Chaos {
    world: World,
    draw: Draw,
    /// Jobs and runs of which the run has not heard, or will hear again.
    unheard: BTreeSet<JobId>,
    over: BTreeMap<RunId, RunState>,
    unheard_runs: BTreeSet<RunId>,
}

impl Chaos {
    fn of(seed: u64, size: usize) -> Self {
        let mut draw = Draw::of(seed);
        let world = World::begin(graph(&mut draw, size, Flavour::Everything));
        Self { world, draw, unheard: BTreeSet::new(), over: BTreeMap::new(), unheard_runs: BTreeSet::new() }
    }

    fn happen(&mut self) {
        match self.draw.below(24) {
            0..=8 => self.end_job(),
            9..=14 => self.deliver(60),
            15 => self.world.crash(),
            16 => self.pass_time(),
            17 => self.end_run(),
            18 if self.draw.percent(50) => self.change_result(),
            18 => self.finish_late(),
            19 => self.order(),
            20 => self.mend(),
            21 if self.draw.percent(20) => self.lose(),
            22 => self.rerun(),
            _ => self.obey_stops(),
        }
    }

    fn end_job(&mut self) {
        let Some(id) = self.draw.pick(&self.world.open_jobs()).cloned() else { return };
        let end = *self.draw.pick(&ENDS).unwrap();
        self.world.jobs.get_mut(&id).unwrap().end = Some(end);
        self.unheard.insert(id);
    }

    fn obey_stops(&mut self) {
        let open = self.world.open_jobs();
        let stopped: Vec<_> = open.into_iter().filter(|id| self.world.stopped.contains(id)).collect();
        for id in stopped {
            self.world.jobs.get_mut(&id).unwrap().end = Some(JobState::Cancelled);
            self.unheard.insert(id);
        }
    }

    fn end_run(&mut self) {
        let open: Vec<_> = self.world.runs.keys().filter(|id| !self.over.contains_key(*id)).cloned().collect();
        let Some(id) = self.draw.pick(&open).cloned() else { return };
        self.over.insert(id.clone(), *self.draw.pick(&RUN_ENDS).unwrap());
        self.unheard_runs.insert(id);
    }

    /// A result is quarantined late, or released.
    fn change_result(&mut self) {
        let done: Vec<_> = self.world.jobs.iter().filter(|(_, job)| job.end.is_some()).map(|(id, _)| id.clone()).collect();
        let Some(id) = self.draw.pick(&done).cloned() else { return };
        let end = &mut self.world.jobs.get_mut(&id).unwrap().end;
        *end = match *end {
            Some(JobState::Succeeded) => Some(JobState::OutputQuarantined),
            Some(JobState::OutputQuarantined) => Some(JobState::Succeeded),
            other => other,
        };
        self.unheard.insert(id);
    }

    /// An attempt that no longer counted was done.
    fn finish_late(&mut self) {
        let may = |end| matches!(end, Some(JobState::Cancelled | JobState::Timeout | JobState::Failed));
        let over: Vec<_> = self.world.jobs.iter().filter(|(_, job)| may(job.end)).map(|(id, _)| id.clone()).collect();
        let Some(id) = self.draw.pick(&over).cloned() else { return };
        self.world.jobs.get_mut(&id).unwrap().late = true;
        self.unheard.insert(id);
    }

    /// Some of the news, in any order, some of them twice or to be told again.
    fn deliver(&mut self, chance: usize) {
        let mut news = Vec::new();
        for id in self.unheard.clone().into_iter().filter(|_| self.draw.percent(chance)).collect::<Vec<_>>() {
            news.push(self.world.jobs[&id].news());
            if self.draw.percent(80) || chance == 100 {
                self.unheard.remove(&id);
            }
        }
        for id in self.unheard_runs.clone() {
            news.push(vec![self.world.run_news(&id, self.over[&id])]);
            self.unheard_runs.remove(&id);
        }
        for at in (1..news.len()).rev() {
            news.swap(at, self.draw.below(at + 1));
        }
        if let Some(twice) = self.draw.pick(&news).cloned() {
            news.push(twice);
        }
        self.hear(&news.concat());
    }

    /// A crash between the decision and its commit repeats it: a process that loads the run makes an equal decision.
    fn hear(&mut self, news: &[RunMessage]) {
        let decided = self.world.live.step(news, self.world.now);
        let mut loaded = RunPlanner::new(self.world.dag.clone(), self.world.committed.clone());
        let again = loaded.step(news, self.world.now);
        assert_eq!(format!("{decided:?}"), format!("{again:?}"));
        self.world.take(decided);
    }

    fn pass_time(&mut self) {
        let millis = self.draw.below(1_000) as u64;
        self.world.wait(millis);
    }

    fn order(&mut self) {
        let order = match self.draw.below(40) {
            0 => RunCommand::Cancel { actor: ActorId::from("bob"), note: None, compensate: false },
            1 | 2 => RunCommand::Cancel { actor: ActorId::from("bob"), note: None, compensate: true },
            3..=15 => RunCommand::Pause,
            _ => RunCommand::Resume,
        };
        let before = self.world.committed.clone();
        if self.world.order(order).is_err() {
            assert_eq!(self.world.live.run, before);
        }
    }

    fn mend(&mut self) {
        let stuck = |row: &NodeRun| row.undo.as_ref().is_some_and(|undo| undo.state == UndoState::Stuck);
        let keys: Vec<_> = self.world.committed.nodes.iter().filter(|(_, row)| stuck(row)).map(|(key, _)| *key).collect();
        let Some(key) = self.draw.pick(&keys).copied() else { return };
        let resolve = RunCommand::Resolve { key, actor: ActorId::from("bob") };
        self.world.order(if self.draw.percent(50) { resolve } else { RunCommand::Retry { key } }).unwrap();
    }

    fn lose(&mut self) {
        let waits = self.world.live.waits();
        let Some((key, _)) = self.draw.pick(&waits) else { return };
        let next = self.world.live.lost(&[*key], self.world.now);
        self.world.take(next);
    }

    fn rerun(&mut self) {
        let nodes = self.world.dag.nodes.len();
        let from = vec![self.draw.below(nodes) as NodeIx];
        let _ = self.world.order(RunCommand::Rerun { from, params: Map::new(), fresh: false });
    }

    /// Everything that happened is heard of, and everything under way ends.
    fn finish(&mut self) {
        self.unheard.extend(self.world.jobs.iter().filter(|(_, job)| job.end.is_some()).map(|(id, _)| id.clone()));
        self.deliver(100);
        self.world.drain();
        self.unheard.extend(self.world.jobs.iter().filter(|(_, job)| job.end.is_some()).map(|(id, _)| id.clone()));
        self.deliver(100);
        self.world.drain();
    }

    fn check_end(&self) {
        let Run { head, nodes } = &self.world.committed;
        assert!(head.state.is_over() && head.done == head.total);
        assert!(nodes.values().all(|row| !matches!(row.state, NodeState::Ready | NodeState::Running)));
        if head.closing.is_none() && head.failure.is_none() {
            let failed = nodes.iter().any(|(key, row)| key.item.is_none() && row.state == NodeState::Failed);
            assert_eq!(head.state, if failed { RunState::SucceededWithFailures } else { RunState::Succeeded });
        }
        for (key, row) in nodes {
            let undone = row.undo.as_ref().map(|undo| undo.state.is_settled());
            let expected = (head.state == RunState::Compensated && self.owed(*key, row)).then_some(true);
            assert_eq!(undone, expected, "{key:?} {row:?}");
        }
    }

    /// R-4, by what is known outside of the run.
    fn owed(&self, key: NodeKey, row: &NodeRun) -> bool {
        let node = self.world.dag.node(key.node);
        let Some(undo) = &node.compensation else { return false };
        let has_own_work = node.for_each.is_none() || key.item.is_some();
        let began = row.job.is_some() || row.child.is_some();
        let waited = matches!(node.work, NodeWork::Delay(_)) && row.state == NodeState::Succeeded;
        has_own_work && (waited || self.world.was_done(row) || began && undo.undo_on_failure)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_run_always_ends_and_undoes_exactly_what_was_done(seed: u64, size in 1usize..40, happenings in 0usize..250) {
        let mut chaos = Chaos::of(seed, size);
        for _ in 0..happenings {
            chaos.happen();
        }
        chaos.finish();
        chaos.check_end();
    }

    #[test]
    fn how_nodes_end_does_not_depend_on_the_order_of_news(seed: u64, size in 1usize..80) {
        let ends = |order: u64| {
            let mut draw = Draw::of(seed);
            let mut world = World::begin_large(graph(&mut draw, size, Flavour::OnlyJobs));
            let mut order = Draw::of(order);
            while let Some(id) = order.pick(&world.open_jobs()).cloned() {
                // How a job ends depends on the job alone.
                let end = if (seed >> (world.jobs[&id].request.run.as_ref().unwrap().node % 60)) & 1 == 0 {
                    JobState::Succeeded
                } else {
                    JobState::Failed
                };
                world.end_job(&id, end);
            }
            world.check();
            let states: Vec<_> = world.committed.nodes.iter().map(|(key, row)| (*key, row.state)).collect();
            (world.run_state(), states)
        };
        prop_assert_eq!(ends(1), ends(2));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn large_runs_always_end_too(seed: u64) {
        let mut chaos = Chaos::of(seed, 200);
        for _ in 0..1_000 {
            chaos.happen();
        }
        chaos.finish();
        chaos.check_end();
    }
}

/// For every prefix of the log of one run, a process that loads it there brings it to an equal end.
#[test]
fn a_run_loaded_after_any_commit_ends_the_same() {
    for seed in 0..20 {
        let mut log: Vec<(Run, Vec<RunMessage>)> = Vec::new();
        let mut world = World::begin(graph(&mut Draw::of(seed), 20, Flavour::OnlyJobs));
        while let Some(id) = world.open_jobs().first().cloned() {
            let end = ENDS[(seed as usize + world.jobs.len()) % ENDS.len()];
            log.push((world.committed.clone(), vec![world::news(&world.jobs[&id].request, end)]));
            world.end_job(&id, end);
        }
        for prefix in 0..log.len() {
            let mut live = RunPlanner::new(world.dag.clone(), log[prefix].0.clone());
            for (_, news) in &log[prefix..] {
                let _: Option<RunTransition> = live.step(news, world.now);
            }
            assert_eq!(live.run, world.committed, "from commit {prefix}");
        }
    }
}
