//! The public contract against that of the last release: processes, workers and clients of both versions speak with each other
//! while an installation is upgraded, so nothing that was released may go away or change its meaning on the wire.
//!
//! `proto/released.txt` is the contract of the last release, a line for each thing that somebody may rely on.
//! `UPDATE_RELEASED=1 cargo nextest run -p lockgate-proto` writes it anew: for a release, and for nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lockgate_proto::v1;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

const PACKAGE: &str = "lockgate.v1";

fn released() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/released.txt")
}

/// What each thing is: a name that stays, and what it must stay.
type Contract = BTreeMap<String, String>;

fn contract() -> Contract {
    let files = FileDescriptorSet::decode(v1::DESCRIPTORS).expect("descriptors");
    let mut contract = Contract::new();
    for file in files.file.iter().filter(|file| file.package() == PACKAGE) {
        for message in &file.message_type {
            of_message(PACKAGE, message, &mut contract);
        }
        for one in &file.enum_type {
            of_enum(PACKAGE, one, &mut contract);
        }
        for service in &file.service {
            for method in &service.method {
                let streams = |yes: bool| if yes { "stream " } else { "" };
                let (asks, answers) = (streams(method.client_streaming()), streams(method.server_streaming()));
                let what = format!("{asks}{} -> {answers}{}", method.input_type(), method.output_type());
                contract.insert(format!("rpc {PACKAGE}.{}/{}", service.name(), method.name()), what);
            }
        }
    }
    contract
}

fn of_message(parent: &str, message: &DescriptorProto, contract: &mut Contract) {
    let name = format!("{parent}.{}", message.name());
    for field in &message.field {
        contract.insert(format!("field {name} {}", field.number()), of_field(message, field));
    }
    for inner in &message.nested_type {
        of_message(&name, inner, contract);
    }
    for one in &message.enum_type {
        of_enum(&name, one, contract);
    }
}

/// What the wire and generated code know of a field.
fn of_field(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let of = match field.r#type() {
        Type::Message | Type::Enum => field.type_name().to_owned(),
        plain => format!("{plain:?}").to_lowercase(),
    };
    let label = match (field.label(), field.proto3_optional()) {
        (Label::Repeated, _) => "repeated ".to_owned(),
        (_, true) => "optional ".to_owned(),
        _ => match field.oneof_index.and_then(|at| message.oneof_decl.get(usize::try_from(at).ok()?)) {
            Some(oneof) => format!("oneof {} ", oneof.name()),
            None => String::new(),
        },
    };
    format!("{} {label}{of}", field.name())
}

fn of_enum(parent: &str, one: &EnumDescriptorProto, contract: &mut Contract) {
    for value in &one.value {
        contract.insert(format!("value {parent}.{} {}", one.name(), value.number()), value.name().to_owned());
    }
}

fn read(text: &str) -> Contract {
    let line = |line: &str| line.split_once(": ").map(|(name, what)| (name.to_owned(), what.to_owned()));
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

/// What of the earlier contract does not hold any more.
fn broken(before: &Contract, now: &Contract) -> Vec<String> {
    let tell = |(name, what): (&String, &String)| match now.get(name) {
        None => Some(format!("{name} ({what}) is gone")),
        Some(changed) if changed != what => Some(format!("{name} was {what:?} and is {changed:?}")),
        Some(_) => None,
    };
    before.iter().filter_map(tell).collect()
}

#[test]
fn nothing_of_the_last_release_is_gone_or_means_something_else() {
    let now = contract();
    if std::env::var_os("UPDATE_RELEASED").is_some() {
        let lines: String = now.iter().map(|(name, what)| format!("{name}: {what}\n")).collect();
        let head = "# The contract of the last release; see crates/proto/tests/released.rs. Written for a release, never by hand.\n";
        std::fs::write(released(), format!("{head}{lines}")).expect("written");
    }
    let before = read(&std::fs::read_to_string(released()).expect("the contract of the last release"));
    assert!(before.len() > 500, "it says something: {}", before.len());
    let broken = broken(&before, &now);
    assert!(broken.is_empty(), "processes of the last release would not understand this one:\n{}", broken.join("\n"));
}

#[test]
fn what_would_break_others_is_told() {
    let before = contract();
    let mut changed = before.clone();
    changed.insert("field lockgate.v1.NewJob 1".to_owned(), "job_id uint64".to_owned());
    assert_eq!(broken(&before, &changed).len(), 1);
    let mut gone = before.clone();
    gone.retain(|name, _| !name.starts_with("rpc lockgate.v1.Scheduler/"));
    assert!(broken(&before, &gone).len() > 5);
    let mut more = before.clone();
    more.insert("field lockgate.v1.NewJob 999".to_owned(), "news string".to_owned());
    assert!(broken(&before, &more).is_empty(), "adding is what versions are for");
}
