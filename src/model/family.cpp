#include "model/family.h"

#include <algorithm>
#include <array>

namespace stagecraft {
namespace {

constexpr std::array<Family, 4> kFamilies = {{
    //                                    biases: attention, q/k/v always, MLP; norm of q and k
    {"llama", 2048, 0, 0, true, false, true, false},
    {"mistral", 131072, 8, 0, false, false, false, false},
    {"qwen2", 32768, 32, 0, false, true, false, false},
    {"qwen3", 32768, 32, 128, true, false, false, true},
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
    throw Error("{}: 'model_type': expected llama, mistral, qwen2 or qwen3, found '{}'",
                fields.where(), printable(name));
  }
  const std::string activation = fields.text_or("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    throw Error("{}: 'hidden_act': expected 'silu', found '{}'", fields.where(),
                printable(activation));
  }
  return *family;
}

}  // namespace stagecraft
