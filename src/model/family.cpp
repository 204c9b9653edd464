#include "model/family.h"

#include <algorithm>
#include <array>

#include "base/alternatives.h"

namespace stagecraft {
namespace {

constexpr std::array<Family, 4> kFamilies = {{
    {.model_type = "llama",
     .max_seq_len = 2048,
     .reads_attention_bias = true,
     .reads_mlp_bias = true},
    {.model_type = "mistral", .max_seq_len = 131072, .n_kv_heads = 8},
    {.model_type = "qwen2", .max_seq_len = 32768, .n_kv_heads = 32, .always_qkv_bias = true},
    {.model_type = "qwen3",
     .max_seq_len = 32768,
     .n_kv_heads = 32,
     .head_dim = 128,
     .reads_attention_bias = true,
     .qk_norm = true},
}};

}  // namespace

std::vector<std::string_view> llama_family_types() {
  std::vector<std::string_view> types;
  for (const Family& family : kFamilies) types.push_back(family.model_type);
  return types;
}

bool is_llama_family(const ConfigFields& fields) {
  return std::ranges::find(kFamilies, fields.text_or("model_type", ""), &Family::model_type) !=
         kFamilies.end();
}

const Family& parse_family(const ConfigFields& fields) {
  const std::string name = fields.text_or("model_type", "");
  const auto* family = std::ranges::find(kFamilies, name, &Family::model_type);
  if (family == kFamilies.end()) {
    throw Error("{}: 'model_type': expected {}, found '{}'", fields.where(),
                alternatives(llama_family_types()), printable(name));
  }
  const std::string activation = fields.text_or("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    throw Error("{}: 'hidden_act': expected 'silu', found '{}'", fields.where(),
                printable(activation));
  }
  return *family;
}

}  // namespace stagecraft
