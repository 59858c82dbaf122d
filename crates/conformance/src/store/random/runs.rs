//! Draws steps of runs. Their jobs have the names that others draw too, so that they are moved, ended and in the way.

use std::time::Duration;

use lockgate_core::dag::{NodeKey, NodeRun, NodeState, RunHead, RunState};
use lockgate_core::ids::RunId;
use lockgate_core::request::{RequestHash, RunRef};

use super::draw::Dice;
use super::{JOBS, Pair};
use crate::store::runs_stage::{after, audited, change, child_of, head, job_named};
use crate::store::stage::{Found, Proof, StoreHarness};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{NewDag, RunChange, RunKey, RunStore, Store};

const RUNS: u64 = 3;

pub(super) fn all() -> Vec<RunId> {
    (0..RUNS).map(|n| format!("run-{n}").into()).collect()
}

impl Pair {
    /// Takes one or two steps in both, and compares the answers.
    pub(super) async fn advance(&mut self, dice: &mut Dice) -> Proof {
        self.flush().await?;
        let mut steps = Vec::new();
        for _ in 0..1 + dice.roll(2) {
            let step = self.step(dice).await?;
            steps.push((step, usize::try_from(dice.roll(3))?));
        }
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        for (step, heard) in steps {
            expected.push(hearing(&self.model, step.clone(), heard).await?);
            found.push(hearing(&*self.harness.store, step, heard).await?);
        }
        let expected = self.model.advance(expected).await?;
        let found = self.harness.store.advance(found).await?;
        let plain = |result: &Result<Vec<_>, _>| result.as_ref().map(Vec::len).map_err(Clone::clone);
        assert_eq!(found.iter().map(plain).collect::<Vec<_>>(), expected.iter().map(plain).collect::<Vec<_>>(), "advance");
        Ok(())
    }

    /// Without the news it hears: each Store numbers its own.
    async fn step(&self, dice: &mut Dice) -> Found<RunChange> {
        let h = &self.harness;
        let id = dice.name("run", RUNS);
        let known = self.model.load_runs(&[id.as_str().into()]).await?.pop().flatten();
        let mut next = known.map_or_else(|| newborn(h, &id), |run| after(&run.head));
        next.version += i64::from(dice.once_in(8));
        next.state = RunState::ALL[usize::try_from(dice.roll(12))?.min(8)];
        next.ended_at = next.state.is_over().then(|| h.clock.now());
        next.wakes_at = dice.once_in(2).then(|| h.clock.now() + Duration::from_millis(dice.roll(20_000)));
        let mut step = change(next);
        step.key = dice.once_in(3).then(|| RunKey { key: dice.name("key", 3).into(), hash: RequestHash([7; 32]) });
        for _ in 0..dice.roll(4) {
            let item = dice.once_in(2).then(|| u32::try_from(dice.roll(2)).unwrap_or(0));
            let state = NodeState::ALL[usize::try_from(dice.roll(7))?];
            let key = NodeKey { node: u32::try_from(dice.roll(3))?, item };
            step.nodes.push((key, NodeRun { state, ..NodeRun::default() }));
        }
        for node in 0..u32::try_from(dice.roll(3))? {
            let part = RunRef { run: id.as_str().into(), node, item: None, round: 0, undo: false };
            step.jobs.push(job_named(h, &dice.name("job", JOBS), part, self.scene.judgement(dice))?);
        }
        step.audit.extend(dice.once_in(3).then(|| audited(h, &id)));
        Ok(step)
    }

    pub(super) async fn put_dag(&mut self, dice: &mut Dice) -> Proof {
        let (name, text) = (dice.name("dag", 2), dice.name("text", 3));
        let dag = NewDag {
            tenant: if dice.once_in(3) { "other".into() } else { "acme".into() },
            audit: audited(&self.harness, &name),
            name: name.into(),
            snapshot: text.as_str().into(),
            text: text.into(),
            actor: "ann".into(),
            pins: [].into(),
        };
        let expected = self.model.put_dag(dag.clone()).await?;
        assert_eq!(self.harness.store.put_dag(dag).await?, expected, "put_dag");
        Ok(())
    }
}

/// One is inside of another, and one is of another tenant: what never changes follows from the name.
fn newborn(h: &StoreHarness, id: &str) -> RunHead {
    let plain = head(h, id);
    match id {
        "run-1" => child_of("run-0", plain),
        "run-2" => RunHead { tenant: "other".into(), ..plain },
        _ => plain,
    }
}

async fn hearing(store: &dyn Store, step: RunChange, count: usize) -> Found<RunChange> {
    let news = store.news(std::slice::from_ref(&step.head.id), count).await?;
    Ok(RunChange { heard: news.iter().map(|news| news.no).collect(), ..step })
}
