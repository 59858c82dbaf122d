//! Places the nodes of a drawing in columns and rows: parents left of their children, with few crossing lines.

use super::super::{Dag, NodeIx};

/// A line that spans several columns bends in each of them. Above this many bends lines are drawn straight: bends cost
/// space, and a picture with so many lines is not read line by line.
const BENDS_MAX: usize = 20_000;
/// How often each column is sorted by its neighbours. The first few sweeps remove nearly all crossings that sorting can
/// remove.
const SWEEPS: usize = 4;

pub(super) struct Layout {
    pub(super) points: Vec<Point>,
    /// Points of each column, from top to bottom.
    pub(super) columns: Vec<Vec<usize>>,
    /// Each edge as the points that it passes, both ends included.
    pub(super) edges: Vec<Vec<usize>>,
}

/// A node, or the position where a line passes through a column. The first points are the nodes, by index.
pub(super) struct Point {
    pub(super) node: Option<NodeIx>,
    pub(super) column: usize,
    before: Vec<usize>,
    after: Vec<usize>,
}

impl Layout {
    pub(super) fn of(dag: &Dag) -> Self {
        let mut depths: Vec<usize> = Vec::with_capacity(dag.nodes.len());
        for node in &dag.nodes {
            depths.push(node.needs.iter().map(|parent| depths[*parent as usize] + 1).max().unwrap_or(0));
        }
        let point = |(node, column): (NodeIx, &usize)| Point::new(Some(node), *column);
        let points: Vec<Point> = (0..).zip(&depths).map(point).collect();
        let mut layout = Self { points, columns: Vec::new(), edges: Vec::new() };
        layout.route(dag);
        let width = depths.iter().max().map_or(0, |depth| depth + 1);
        layout.columns = vec![Vec::new(); width];
        for (at, point) in layout.points.iter().enumerate() {
            layout.columns[point.column].push(at);
        }
        for _ in 0..SWEEPS {
            layout.sweep();
        }
        layout
    }

    fn route(&mut self, dag: &Dag) {
        let ends = |(child, node): (usize, &super::Node)| -> Vec<(usize, usize)> {
            node.needs.iter().map(|parent| (*parent as usize, child)).collect()
        };
        let edges: Vec<(usize, usize)> = dag.nodes.iter().enumerate().flat_map(ends).collect();
        let length = |(parent, child): &(usize, usize)| self.points[*child].column - self.points[*parent].column;
        let bends: usize = edges.iter().map(|edge| length(edge) - 1).sum();
        for (parent, child) in edges {
            let mut passed = vec![parent];
            if bends <= BENDS_MAX {
                for column in self.points[parent].column + 1..self.points[child].column {
                    passed.push(self.points.len());
                    self.points.push(Point::new(None, column));
                }
            }
            passed.push(child);
            for hop in passed.windows(2) {
                self.points[hop[0]].after.push(hop[1]);
                self.points[hop[1]].before.push(hop[0]);
            }
            self.edges.push(passed);
        }
    }

    /// Sorts each column by the rows of its neighbours: once from left to right by the left ones, then back by the right
    /// ones.
    fn sweep(&mut self) {
        let mut rows = vec![0; self.points.len()];
        for column in &self.columns {
            column.iter().enumerate().for_each(|(row, point)| rows[*point] = row);
        }
        let Self { points, columns, .. } = self;
        let mut sort = |column: &mut Vec<usize>, neighbours: fn(&Point) -> &[usize]| {
            let middle = |point: &usize| {
                let beside = neighbours(&points[*point]);
                let sum: usize = beside.iter().map(|neighbour| rows[*neighbour]).sum();
                if beside.is_empty() { rows[*point] as f64 } else { sum as f64 / beside.len() as f64 }
            };
            let mut keyed: Vec<(f64, usize)> = column.iter().map(|point| (middle(point), *point)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (row, (_, point)) in keyed.into_iter().enumerate() {
                column[row] = point;
                rows[point] = row;
            }
        };
        columns.iter_mut().for_each(|column| sort(column, |point| &point.before));
        columns.iter_mut().rev().for_each(|column| sort(column, |point| &point.after));
    }
}

impl Point {
    fn new(node: Option<NodeIx>, column: usize) -> Self {
        Self { node, column, before: Vec::new(), after: Vec::new() }
    }
}
