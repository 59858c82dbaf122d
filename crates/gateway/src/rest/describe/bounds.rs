//! Bounds that types cannot say: those of names, of labels, and of numbers without a sign.

use serde_json::{Map, Value, json};

use super::for_each_operation;

/// Names, as `lockgate_contract::names` has them.
const NAME: &str = "^[A-Za-z0-9]([A-Za-z0-9._:-]{0,126}[A-Za-z0-9])?$";
/// Keys of labels and of the environment.
const KEY: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]{1,128}$";
/// Positions in lists, as they are returned; empty is the beginning.
const CURSOR: &str = "^([1-9a-f][0-9a-f]{0,14}|[1-7][0-9a-f]{15}|0)?$";
/// Fields of bodies that are names, or lists of names.
const NAMES: [(&str, &[&str]); 4] = [
    (
        "NewJob",
        &[
            "topic",
            "job_id",
            "idempotency_key",
            "trace_id",
            "capability",
            "concurrency_key",
            "workflow_id",
            "requires",
            "risk_tags",
        ],
    ),
    ("StartBody", &["idempotency_key"]),
    ("NewKey", &["actor", "actor_type", "tenant", "pools"]),
    ("NewRetryPolicy", &["non_retryable"]),
];

pub(super) fn add_to(document: &mut Value) {
    let schemas = &mut document["components"]["schemas"];
    schemas["Compensation"] = compensation();
    for (schema, fields) in NAMES {
        for field in fields {
            let field = &mut schemas[schema]["properties"][field];
            let text = if field.get("items").is_some() { &mut field["items"] } else { field };
            text["pattern"] = json!(NAME);
        }
    }
    let job = &mut schemas["NewJob"]["properties"];
    for field in ["labels", "env"] {
        bound_entries(&mut job[field]);
    }
    let of_compensation =
        json!({ "$ref": "#/components/schemas/Compensation", "description": job["compensation"]["description"] });
    job["compensation"] = json!({ "oneOf": [of_compensation, { "type": "null" }] });
    bound_numbers(document);
    for_each_operation(document, |_, operation| {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            bound_parameter(parameter);
        }
        let contents = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut);
        for schema in contents.into_iter().flat_map(Map::values_mut).filter_map(|content| content.get_mut("schema")) {
            // A body that may be left out is left out, and not `null`.
            without_null(schema);
        }
    });
}

fn compensation() -> Value {
    let entries =
        || json!({ "type": "object", "propertyNames": { "type": "string" }, "additionalProperties": { "type": "string" } });
    let (mut env, mut labels) = (entries(), entries());
    bound_entries(&mut env);
    bound_entries(&mut labels);
    json!({
        "type": "object",
        "description": "The job that undoes the work of another one.",
        "required": ["topic"],
        "additionalProperties": false,
        "properties": {
            "topic": { "type": "string", "pattern": NAME },
            "payload": { "description": "Any JSON value, as the payload of a job." },
            "env": env,
            "labels": labels,
            "budget": { "$ref": "#/components/schemas/JobBudget" },
            "idempotency_key": { "type": ["string", "null"], "pattern": NAME },
            "undo_on_failure": { "type": "boolean", "description": "Undo the job also if it failed: it may have done half of its work." },
        },
    })
}

fn bound_entries(entries: &mut Value) {
    entries["maxProperties"] = json!(64);
    entries["propertyNames"]["pattern"] = json!(KEY);
    entries["additionalProperties"]["maxLength"] = json!(4096);
}

fn bound_parameter(parameter: &mut Value) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    let in_path = parameter["in"] == "path";
    let schema = &mut parameter["schema"];
    // Parameters are texts: they are there, or they are not.
    without_null(schema);
    match &*name {
        "Idempotency-Key" => schema["pattern"] = json!(NAME),
        "cursor" => schema["pattern"] = json!(CURSOR),
        "label" => schema["items"]["pattern"] = json!("="),
        "Last-Event-ID" => (schema["minimum"], schema["maximum"]) = (json!(0), json!(i64::MAX)),
        _ if in_path && schema["type"] == "string" => schema["minLength"] = json!(1),
        _ => {}
    }
}

fn without_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = &mut types[..] {
            schema["type"] = only.take();
        }
    }
    if let Some(choices) = schema.get_mut("oneOf").and_then(Value::as_array_mut) {
        choices.retain(|choice| choice["type"] != "null");
        if let [only] = &mut choices[..] {
            *schema = only.take();
        }
    }
}

/// Numbers without a sign and of 32 bits do not fit into the format for numbers with one.
fn bound_numbers(value: &mut Value) {
    if let Value::Object(map) = value {
        let from_zero = map.get("minimum").and_then(Value::as_i64).is_some_and(|minimum| minimum >= 0);
        if from_zero && map.get("format").is_some_and(|format| format == "int32") {
            map.entry("maximum").or_insert(json!(u32::MAX));
            map.insert("format".to_owned(), json!("int64"));
        }
        map.values_mut().for_each(bound_numbers);
    } else if let Value::Array(list) = value {
        list.iter_mut().for_each(bound_numbers);
    }
}
