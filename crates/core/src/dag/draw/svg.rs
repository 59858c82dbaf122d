//! Draws a DAG as a self-contained SVG for light and dark pages.

use std::fmt::Write;

use super::super::{Dag, NodeIx, NodeState};
use super::layout::Layout;
use super::{colours, escaped, kind};

const LETTER_WIDTH: usize = 8;
const BOX_HEIGHT: usize = 44;
const BEND_HEIGHT: usize = 16;
const ROW_GAP: usize = 16;
const COLUMN_GAP: usize = 56;
const PADDING: usize = 12;
/// Longer names are cut; a tooltip on the box shows the whole name.
const LETTERS_MAX: usize = 36;

/// The two lines of text in a box.
struct Label {
    name: String,
    about: String,
}

/// The area of a point: the box of a node, or the gap of a line through a column.
#[derive(Clone, Copy, Default)]
struct Area {
    left: usize,
    width: usize,
    middle: usize,
}

impl Dag {
    /// An SVG document with parents left of their children. A node with a state has the state's colour and shows its name.
    pub fn svg(&self, state: impl Fn(NodeIx) -> Option<NodeState>) -> String {
        let layout = Layout::of(self);
        let labels: Vec<Label> =
            (0..).zip(&self.nodes).map(|(at, node)| label(&node.name, &kind(node), state(at))).collect();
        let (areas, width, height) = areas(&layout, &labels);
        let mut svg = head(&self.name, width, height);
        for edge in &layout.edges {
            let ends: Vec<Area> = edge.iter().map(|point| areas[*point]).collect();
            let _ = writeln!(svg, "<path class=\"edge\" d=\"{}\" marker-end=\"url(#end)\"/>", line(&ends));
        }
        for ((at, label), area) in (0..).zip(&labels).zip(&areas) {
            let class = state(at).unwrap_or_default().as_str();
            let Area { left, width, middle } = *area;
            let (top, x, name, about) = (middle - BOX_HEIGHT / 2, left + PADDING, middle - 3, middle + 14);
            let title = format!("{} ({})", self.node(at).name, kind(self.node(at)));
            let _ = writeln!(
                svg,
                "<g><title>{}</title><rect class=\"{class}\" x=\"{left}\" y=\"{top}\" width=\"{width}\" \
                 height=\"{BOX_HEIGHT}\" rx=\"6\"/><text class=\"name\" x=\"{x}\" y=\"{name}\">{}</text>\
                 <text x=\"{x}\" y=\"{about}\">{}</text></g>",
                escaped(&title),
                escaped(&label.name),
                escaped(&label.about),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn label(name: &str, kind: &str, state: Option<NodeState>) -> Label {
    let state = state.map_or_else(String::new, |state| format!("{} · ", state.as_str()));
    Label { name: cut(name), about: format!("{state}{}", cut(kind)) }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LETTERS_MAX {
        return text.to_owned();
    }
    text.chars().take(LETTERS_MAX - 1).chain(['…']).collect()
}

/// The area of each point, and the size of the drawing.
fn areas(layout: &Layout, labels: &[Label]) -> (Vec<Area>, usize, usize) {
    let step = |point: usize| ROW_GAP + if layout.points[point].node.is_some() { BOX_HEIGHT } else { BEND_HEIGHT };
    let heights = layout.columns.iter().map(|column| column.iter().map(|point| step(*point)).sum::<usize>());
    let heights: Vec<usize> = heights.collect();
    let height = heights.iter().copied().max().unwrap_or(0);
    let mut areas = vec![Area::default(); layout.points.len()];
    let mut left = COLUMN_GAP / 2;
    for (column, own) in layout.columns.iter().zip(heights) {
        let letters = column.iter().filter_map(|point| labels.get(*point)).map(Label::letters).max().unwrap_or(0);
        let width = letters * LETTER_WIDTH + 2 * PADDING;
        let mut top = ROW_GAP + (height - own) / 2;
        for point in column {
            areas[*point] = Area { left, width, middle: top + (step(*point) - ROW_GAP) / 2 };
            top += step(*point);
        }
        left += width + COLUMN_GAP;
    }
    (areas, left.saturating_sub(COLUMN_GAP / 2), height + ROW_GAP)
}

impl Label {
    fn letters(&self) -> usize {
        self.name.chars().count().max(self.about.chars().count())
    }
}

/// The path of a line: from the right side of the first area through those between to the left side of the last.
fn line(areas: &[Area]) -> String {
    let mut path = String::new();
    for (at, area) in areas.iter().enumerate() {
        let Area { left, width, middle } = *area;
        if let Some(last) = at.checked_sub(1).map(|at| areas[at]) {
            let (from, bend) = (last.left + last.width, (left - last.left - last.width) / 2);
            let _ = write!(path, " C {} {} {} {middle} {left} {middle}", from + bend, last.middle, left - bend);
        }
        if at == 0 {
            let _ = write!(path, "M {} {middle}", left + width);
        } else if at + 1 < areas.len() {
            let _ = write!(path, " H {}", left + width);
        }
    }
    path
}

fn head(name: &str, width: usize, height: usize) -> String {
    let fills = |dark: bool| -> String {
        let rule = |state: NodeState| {
            let (light, black) = colours(state);
            format!(".{}{{fill:{}}}", state.as_str(), if dark { black } else { light })
        };
        NodeState::ALL.map(rule).concat()
    };
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"DAG {name}\">\n<style>rect{{stroke:#71717a}}text{{font:11px ui-monospace,monospace;\
         fill:#18181b}}.name{{font-size:13px;font-weight:600}}.edge{{fill:none;stroke:#71717a}}.tip{{fill:#71717a}}{}\
         @media(prefers-color-scheme:dark){{text{{fill:#fafafa}}{}}}</style>\n\
         <defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
         orient=\"auto\"><path class=\"tip\" d=\"M 0 0 L 8 4 L 0 8 z\"/></marker></defs>\n",
        fills(false),
        fills(true),
        name = escaped(name),
    )
}
