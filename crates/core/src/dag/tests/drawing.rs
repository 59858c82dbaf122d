//! Pictures of DAGs.

use super::*;

const DAG: &str = "a: {topic: job.echo}
     b: {needs: a, approval: {reason: x}}
     c: {needs: [a, b], delay: 1s}
     d: {needs: [a], dag: other, for_each: '[1]'}";

#[test]
fn mermaid_has_every_node_edge_and_state() {
    let state = |node: NodeIx| [NodeState::Succeeded, NodeState::Running].get(node as usize).copied();
    let expected = "flowchart LR
  n0[\"a<br/><small>job.echo</small>\"]:::succeeded
  n1{{\"b<br/><small>approval</small>\"}}:::running
  n2([\"c<br/><small>delay</small>\"])
  n3[[\"d<br/><small>dag other for each</small>\"]]
  n0 --> n1
  n0 --> n2
  n1 --> n2
  n0 --> n3
  classDef running fill:#bfdbfe,stroke:#71717a,color:#18181b
  classDef succeeded fill:#bbf7d0,stroke:#71717a,color:#18181b
";
    assert_eq!(with_nodes(DAG).mermaid(state), expected);
}

/// The numbers of every box: x, y, width, height.
fn boxes(svg: &str) -> Vec<[i64; 4]> {
    let number = |text: &str, name: &str| {
        let begin = text.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
        text[begin..].split('"').next().unwrap().parse().unwrap()
    };
    svg.split("<rect").skip(1).map(|rect| ["x", "y", "width", "height"].map(|name| number(rect, name))).collect()
}

#[test]
fn a_drawing_has_every_node_and_edge_inside_of_it_and_no_boxes_on_each_other() {
    let wide: String = (0..30).map(|n| format!("w{n}: {{needs: a, topic: job.echo}}\n")).collect();
    let all: Vec<String> = (0..30).map(|n| format!("w{n}")).collect();
    let text = format!("{DAG}\n{wide}end: {{needs: [{}, c], topic: job.with.a.long.name}}", all.join(", "));
    let dag = with_nodes(&text);
    let svg = dag.svg(|_| None);
    let boxes = boxes(&svg);
    assert_eq!(boxes.len(), dag.nodes.len());
    let edges: usize = dag.nodes.iter().map(|node| node.needs.len()).sum();
    assert_eq!(svg.matches("<path class=\"edge\"").count(), edges);
    let size = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
    let (width, height) = size.split_once(' ').unwrap();
    let (width, height): (i64, i64) = (width.parse().unwrap(), height.parse().unwrap());
    for (at, [x, y, w, h]) in boxes.iter().enumerate() {
        assert!(*x >= 0 && *y >= 0 && x + w <= width && y + h <= height, "{at}");
        let apart = |[ox, oy, ow, oh]: &[i64; 4]| x + w <= *ox || ox + ow <= *x || y + h <= *oy || oy + oh <= *y;
        assert!(boxes[at + 1..].iter().all(apart), "{at}");
    }
    for (child, node) in dag.nodes.iter().enumerate() {
        let right = |parent: &NodeIx| boxes[*parent as usize][0] + boxes[*parent as usize][2];
        assert!(node.needs.iter().all(|parent| right(parent) < boxes[child][0]), "{} is left of what it needs", node.name);
    }
}

#[test]
fn a_drawing_says_states_in_words_and_colours_on_light_and_dark() {
    let svg = with_nodes("a: {topic: t}").svg(|_| Some(NodeState::Failed));
    assert!(svg.contains("<rect class=\"FAILED\"") && svg.contains(">FAILED · t</text>"));
    assert!(svg.contains(".FAILED{fill:#fecaca}") && svg.contains(".FAILED{fill:#991b1b}"));
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn the_largest_dag_can_be_drawn() {
    let layers = |layer: usize| {
        (0..100).map(move |n| match layer {
            0 => format!("n0x{n}: {{topic: t}}\n"),
            _ => format!("n{layer}x{n}: {{needs: [n0x{n}, n{}x{}], topic: t}}\n", layer - 1, (n + 1) % 100),
        })
    };
    let dag = with_nodes(&(0..100).flat_map(layers).collect::<String>());
    assert_eq!(dag.svg(|_| None).matches("<rect").count(), NODES_MAX);
    assert_eq!(dag.mermaid(|_| None).matches(" --> ").count(), dag.nodes.iter().map(|node| node.needs.len()).sum::<usize>());
}
