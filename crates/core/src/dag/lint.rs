//! What is allowed in a DAG and still worth a look.

use super::{Dag, Work};

impl Dag {
    /// Nodes whose work nothing can undo.
    pub fn uncompensated(&self) -> Vec<&str> {
        let works = |work: &Work| matches!(work, Work::Job(_) | Work::Dag(_));
        let left = self.nodes.iter().filter(|node| works(&node.work) && node.compensation.is_none());
        left.map(|node| &*node.name).collect()
    }
}
