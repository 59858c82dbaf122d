//! What the process stands on, each in a word.

use lockgate_ports::Condition;

use super::{HealthView, StoreState};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    pub name: &'static str,
    pub state: &'static str,
    /// More about it, where there is more to say.
    pub detail: String,
}

impl HealthView {
    pub fn components(&self) -> Vec<Component> {
        let store = match &self.store.state {
            StoreState::Unknown => "not asked yet".to_owned(),
            StoreState::Answers => format!("reads and writes in {:.1} ms", self.store.took.as_secs_f64() * 1e3),
            StoreState::Hangs => format!("no answer for {:.1} s", self.store.took.as_secs_f64()),
            StoreState::Refuses(error) => error.to_string(),
        };
        let (lanes, lanes_detail) = match &self.lanes {
            Condition::Sound if self.lanes_ahead_of.is_some() => ("ahead", "of the pools that the Store has in force"),
            Condition::Sound => ("sound", ""),
            Condition::Behind => ("behind", "being rebuilt from the Store"),
            Condition::Blank => ("blank", "being rebuilt from the Store"),
            Condition::Away(why) => ("away", &**why),
        };
        let bus = match (&self.bus_away, self.alone) {
            (Some(_), _) => "away",
            (None, true) => "in_process",
            (None, false) => "connected",
        };
        let kernel = match (self.kernel.ready, self.kernel.elsewhere) {
            (false, _) => "away",
            (true, true) => "elsewhere",
            (true, false) => "in_process",
        };
        vec![
            Component { name: "store", state: self.store.state.as_str(), detail: store },
            Component { name: "coordination", state: lanes, detail: lanes_detail.to_owned() },
            Component { name: "bus", state: bus, detail: self.bus_away.clone().unwrap_or_default() },
            Component { name: "kernel", state: kernel, detail: format!("policy {}", self.kernel.snapshot) },
        ]
    }
}
