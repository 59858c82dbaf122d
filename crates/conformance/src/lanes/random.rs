//! Random interleavings against the model of the Store.
//!
//! The test draws words; each word is one step, decoded here. Commits, offers, reads of the Store and their answers are
//! separate steps, so that every race between them comes up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lockgate_core::job::Job;
use lockgate_core::lane::{LaneKey, Priority, ReadyKey};

use super::stage::{Spec, Stage, gone, returned};
use lockgate_ports::lanes::{Claim, Lanes, Refill, Settlement};

const TOPICS: [&str; 2] = ["echo", "noop"];
const TENANTS: [&str; 3] = ["a", "b", "c"];

/// Panics when a job is claimed twice, or not at all.
pub fn loses_nothing(lanes: Arc<dyn Lanes>, words: &[u64]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(play(lanes, words)),
        Err(error) => panic!("no runtime: {error}"),
    }
}

async fn play(lanes: Arc<dyn Lanes>, words: &[u64]) {
    let mut game = Game {
        stage: Stage::new(lanes),
        unheard: VecDeque::new(),
        claims: BTreeMap::new(),
        late: VecDeque::new(),
        pages: VecDeque::new(),
        listing: None,
        submitted: 0,
        dispatched: 0,
    };
    for word in words {
        game.step(Dice(*word)).await;
    }
    game.finish().await;
}

/// Draws small numbers from one word.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        let sides = sides.max(1) as u64;
        let rolled = self.0 % sides;
        self.0 /= sides;
        usize::try_from(rolled).unwrap_or(0)
    }
}

struct Game {
    stage: Stage,
    /// Committed, not offered yet.
    unheard: VecDeque<Arc<Job>>,
    /// Claimed, not settled yet.
    claims: BTreeMap<(LaneKey, ReadyKey), Claim>,
    /// Claimed, and forgotten by a rebuild before they were settled.
    late: VecDeque<Claim>,
    /// Read from the Store, not fed yet.
    pages: VecDeque<Refill>,
    /// Read from the Store, not rebuilt yet.
    listing: Option<Vec<(LaneKey, u64)>>,
    submitted: usize,
    dispatched: usize,
}

impl Game {
    async fn step(&mut self, mut dice: Dice) {
        match dice.roll(13) {
            0..=2 => self.commit(&mut dice),
            3 => self.offer(&mut dice).await,
            4 => self.offer_again(&mut dice).await,
            5 | 6 => self.claim(&mut dice).await,
            7 => self.settle(&mut dice).await,
            8 => self.cancel(&mut dice).await,
            9 => self.ask(&mut dice).await,
            10 => self.refill(&mut dice).await,
            11 => self.let_go().await,
            _ => self.rebuild(&mut dice).await,
        }
    }

    fn commit(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(12) {
            let spec = Spec {
                tenant: TENANTS[dice.roll(3)],
                topic: TOPICS[dice.roll(2)],
                priority: Priority::ALL[dice.roll(2)],
                due_ms: 1_000 + i64::try_from(dice.roll(16)).unwrap_or(0),
                ..Spec::default()
            };
            let job = self.stage.commit(&spec);
            self.unheard.push_back(job);
            self.submitted += 1;
        }
    }

    async fn offer(&mut self, dice: &mut Dice) {
        let count = self.unheard.len().min(1 + dice.roll(20));
        let jobs: Vec<_> = self.unheard.drain(..count).collect();
        self.stage.offer(&jobs).await;
    }

    async fn offer_again(&mut self, dice: &mut Dice) {
        let skip = dice.roll(30);
        let jobs: Vec<_> = self.stage.rows().skip(skip).take(1 + dice.roll(5)).cloned().collect();
        self.stage.offer(&jobs).await;
    }

    async fn claim(&mut self, dice: &mut Dice) {
        let (first, second) = (dice.roll(4), dice.roll(4));
        let seats: [(&[&'static str], usize); 2] = [(&TOPICS[..1], first), (&TOPICS, second)];
        let claims = self.stage.claim_for(&seats).await;
        assert!(claims.len() <= first + second);
        for claim in claims {
            let known = self.claims.insert((claim.lane.clone(), claim.key), claim);
            assert!(known.is_none(), "claimed twice: {known:?}");
        }
    }

    async fn settle(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(3) {
            let Some(at) = self.claims.keys().nth(dice.roll(self.claims.len())).cloned() else { return };
            let Some(claim) = self.claims.remove(&at) else { return };
            match claim.job.clone().filter(|_| self.stage.has(&at.0, at.1) && dice.roll(3) == 0) {
                Some(job) => {
                    self.stage.lanes.settle(vec![returned(&claim, &job)]).await;
                }
                None => self.dispatched += usize::from(self.stage.dispatch(claim).await),
            }
        }
    }

    /// A waiting job ends for another reason, such as a cancel.
    async fn cancel(&mut self, dice: &mut Dice) {
        let at = dice.roll(self.stage.rows().count());
        let Some((lane, key)) = self.stage.rows().nth(at).map(|job| (job.lane(), job.ready_key())) else { return };
        self.stage.remove(&lane, key);
        self.submitted -= 1;
        self.unheard.retain(|job| job.ready_key() != key);
        self.claims.remove(&(lane.clone(), key));
        self.stage.lanes.settle(vec![Settlement::Gone { lane, key, claim: None }]).await;
    }

    async fn ask(&mut self, dice: &mut Dice) {
        for asked in self.stage.lanes.refill_requests().await {
            // Some reads fail, and their refill requests are never answered.
            if dice.roll(4) > 0 {
                let jobs = self.stage.ready(&asked);
                self.pages.push_back(Refill { asked, jobs });
            }
        }
    }

    async fn refill(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(self.pages.len());
            if let Some(page) = self.pages.remove(at) {
                self.stage.lanes.refill(page).await;
            }
        }
    }

    /// Reading the Store and acting on it are two steps here too.
    async fn rebuild(&mut self, dice: &mut Dice) {
        let Some(listing) = self.listing.take() else {
            self.listing = Some(self.stage.ready_lanes());
            return;
        };
        if dice.roll(2) == 0 {
            let forgotten: Vec<_> = listing.iter().map(|(lane, _)| lane.clone()).collect();
            self.stage.lanes.rebuild(listing).await;
            let late = self.claims.extract_if(.., |(lane, _), _| forgotten.contains(lane));
            self.late.extend(late.map(|(_, claim)| claim));
        }
    }

    /// The holder of a forgotten claim settles it. Another process may have claimed the job again.
    async fn let_go(&mut self) {
        let Some(claim) = self.late.pop_front() else { return };
        let job = self.stage.rows().find(|job| job.ready_key() == claim.key && job.lane() == claim.lane).cloned();
        let said = job.map_or_else(|| gone(&claim), |job| returned(&claim, &job));
        self.stage.lanes.settle(vec![said]).await;
    }

    async fn finish(mut self) {
        let unheard: Vec<_> = self.unheard.drain(..).collect();
        self.stage.offer(&unheard).await;
        for claim in std::mem::take(&mut self.claims).into_values() {
            self.dispatched += usize::from(self.stage.dispatch(claim).await);
        }
        self.dispatched += self.stage.drain(&TOPICS, 7).await.len();
        let left: Vec<_> = self.stage.rows().map(|job| (job.lane(), job.ready_key())).collect();
        assert!(left.is_empty(), "never claimed: {left:?}");
        assert_eq!(self.dispatched, self.submitted);
        assert_eq!(self.stage.depths(9).await, [], "nothing waits any more");
    }
}
