#include "formats/gguf/architecture_keys.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace stagecraft {
namespace {

// Keys that do not influence the computation, or that repeat other keys.
constexpr std::array<std::string_view, 5> kWithoutEffect = {
    "tensor_data_layout",      // the order of q and k before the conversion
    "rope.scaling.finetuned",  // whether the model was trained further with the scaling
    "rope.scaling.original_context_length",  // of scalings other than yarn
    "attention.layer_norm_epsilon",          // the key of the other kind of norm
    "attention.layer_norm_rms_epsilon",
};

}  // namespace

ArchitectureKeys::ArchitectureKeys(const GgufMetadata& metadata, std::string_view architecture)
    : metadata_(metadata), prefix_(fmt::format("{}.", architecture)) {}

void ArchitectureKeys::expect(std::string_view name, std::size_t value) {
  if (has(name) && size(name) != value) refuse(name, fmt::format("{}", value));
}

void ArchitectureKeys::refuse_leftovers() const {
  for (const std::string_view key : metadata_.keys()) {
    if (!key.starts_with(prefix_) || metadata_.is_neutral(key)) continue;
    const std::string_view name = key.substr(prefix_.size());
    const bool known = std::ranges::find(asked_, name) != asked_.end() ||
                       std::ranges::find(kWithoutEffect, name) != kWithoutEffect.end();
    if (!known) metadata_.refuse(key, "no such key (it is not supported)");
  }
}

std::string ArchitectureKeys::key(std::string_view name) {
  asked_.emplace_back(name);
  return prefix_ + std::string(name);
}

}  // namespace stagecraft
