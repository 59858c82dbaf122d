//! Keys of model providers.

use super::Probe;

pub(super) static PROBES: [Probe; 9] = [
    Probe::token(
        "openai_key",
        &["sk-"],
        "sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,250}|[A-Za-z0-9]{48}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})",
    ),
    Probe::token("anthropic_key", &["sk-ant-"], "sk-ant-(?:api|admin|oat|ort|sid)[0-9]{2}-[A-Za-z0-9_-]{32,200}"),
    Probe::token("openrouter_key", &["sk-or-v1-"], "sk-or-v1-[a-f0-9]{64}"),
    Probe::token("hugging_face_token", &["hf_", "api_org_"], "(?:hf_|api_org_)[A-Za-z0-9]{34}"),
    Probe::token("replicate_token", &["r8_"], "r8_[A-Za-z0-9]{37}"),
    Probe::token("groq_key", &["gsk_"], "gsk_[A-Za-z0-9]{52}"),
    Probe::token("xai_key", &["xai-"], "xai-[A-Za-z0-9]{80}"),
    Probe::token("perplexity_key", &["pplx-"], "pplx-[A-Za-z0-9]{48}"),
    Probe::token("langsmith_key", &["lsv2_"], "lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
];
