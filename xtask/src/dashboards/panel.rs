//! What a dashboard is made of, and how Grafana wants it.

use serde_json::{Value, json};

pub(super) struct Dashboard {
    /// Of the file, and in the address.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: Vec<Panel>,
}

pub(super) struct Panel {
    title: &'static str,
    unit: Unit,
    shape: Shape,
    /// A query, and what its series are called.
    queries: Vec<(String, &'static str)>,
}

#[derive(Clone, Copy)]
pub(super) enum Unit {
    Count,
    PerSecond,
    Seconds,
    /// A part of one.
    Ratio,
}

impl Unit {
    const fn grafana(self) -> &'static str {
        match self {
            Self::Count => "short",
            Self::PerSecond => "ops",
            Self::Seconds => "s",
            Self::Ratio => "percentunit",
        }
    }
}

#[derive(Clone, Copy)]
enum Shape {
    Lines,
    /// One number, red from a bound on if there is one.
    Number {
        red_from: Option<f64>,
    },
}

impl Panel {
    pub(super) fn lines(title: &'static str, unit: Unit, queries: &[(&str, &'static str)]) -> Self {
        Self { title, unit, shape: Shape::Lines, queries: own(queries) }
    }

    pub(super) fn number(title: &'static str, unit: Unit, query: &str, red_from: Option<f64>) -> Self {
        Self { title, unit, shape: Shape::Number { red_from }, queries: own(&[(query, "")]) }
    }

    /// Quantiles of a histogram, by one label.
    pub(super) fn quantiles(title: &'static str, family: &str, label: &str, legend: &'static str) -> Self {
        let query = |quantile: &str| {
            format!("histogram_quantile({quantile}, sum by (le, {label}) (rate({family}_bucket[$__rate_interval])))")
        };
        Self { title, unit: Unit::Seconds, shape: Shape::Lines, queries: vec![(query("0.95"), legend)] }
    }

    const fn size(&self) -> (u32, u32) {
        match self.shape {
            Shape::Lines => (8, 8),
            Shape::Number { .. } => (4, 4),
        }
    }

    fn json(&self, id: u32, x: u32, y: u32) -> Value {
        let (w, h) = self.size();
        let target = |(at, (expr, legend)): (usize, &(String, &str))| {
            let letter = char::from(b'A' + u8::try_from(at % 26).unwrap_or_default());
            json!({ "refId": letter.to_string(), "expr": expr, "legendFormat": legend, "datasource": source() })
        };
        let targets: Vec<Value> = self.queries.iter().enumerate().map(target).collect();
        let mut defaults = json!({ "unit": self.unit.grafana(), "min": 0 });
        let kind = match self.shape {
            Shape::Lines => "timeseries",
            Shape::Number { red_from } => {
                let red = red_from.map(|bound| json!({ "color": "red", "value": bound }));
                let steps = std::iter::once(json!({ "color": "green", "value": null })).chain(red);
                defaults["thresholds"] = json!({ "mode": "absolute", "steps": steps.collect::<Vec<_>>() });
                "stat"
            }
        };
        json!({
            "id": id,
            "type": kind,
            "title": self.title,
            "datasource": source(),
            "gridPos": { "x": x, "y": y, "w": w, "h": h },
            "fieldConfig": { "defaults": defaults, "overrides": [] },
            "targets": targets,
        })
    }
}

fn own(queries: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
    queries.iter().map(|(query, legend)| ((*query).to_owned(), *legend)).collect()
}

/// Whichever Prometheus the reader chose.
fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${source}" })
}

/// Columns of Grafana's grid.
const WIDTH: u32 = 24;

impl Dashboard {
    pub(super) fn json(&self) -> Value {
        json!({
            "uid": format!("lockgate-{}", self.name),
            "title": self.title,
            "tags": ["lockgate"],
            "schemaVersion": 39,
            "editable": false,
            "refresh": "30s",
            "time": { "from": "now-1h", "to": "now" },
            "templating": { "list": [{ "name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus" }] },
            "links": [{ "type": "dashboards", "tags": ["lockgate"], "asDropdown": true, "title": "Lockgate" }],
            "panels": self.panels(),
        })
    }

    /// Rows below each other, panels of a row beside each other as far as there is room.
    fn panels(&self) -> Vec<Value> {
        let mut panels = Vec::new();
        let mut y = 0;
        for row in &self.rows {
            let id = u32::try_from(panels.len()).unwrap_or(u32::MAX) + 1;
            let place = json!({ "x": 0, "y": y, "w": WIDTH, "h": 1 });
            panels.push(
                json!({ "id": id, "type": "row", "title": row.title, "collapsed": false, "gridPos": place, "panels": [] }),
            );
            y += 1;
            let (mut x, mut height) = (0, 0);
            for panel in &row.panels {
                let (w, h) = panel.size();
                if x + w > WIDTH {
                    (x, y, height) = (0, y + height, 0);
                }
                let id = u32::try_from(panels.len()).unwrap_or(u32::MAX) + 1;
                panels.push(panel.json(id, x, y));
                x += w;
                height = height.max(h);
            }
            y += height;
        }
        panels
    }
}
