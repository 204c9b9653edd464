#include "model/batch.h"

#include <algorithm>

#include "base/processors.h"

namespace stagecraft {
namespace {

Form cache_form(KvType type) {
  constexpr Form kForms[] = {Form::F32, Form::F16, Form::Q8};
  return kForms[static_cast<std::size_t>(type)];
}

}  // namespace

// More threads than cores would wait for each other, and nothing would be faster.
Batch::Batch(const Model& model, std::size_t n_sequences, std::size_t context, std::size_t max_rows,
             std::size_t n_threads)
    : model_(model),
      workspace_(model.config, kernels(), max_rows, std::min(n_threads, usable_cores())) {
  for (std::size_t i = 0; i < n_sequences; ++i) {
    caches_.emplace_back(model.config, context, cache_form(model.kv_type));
  }
  tokens_.reserve(n_sequences);
}

void Batch::forward(std::span<const Part> parts, MatrixView<float> logits) {
  tokens_.clear();
  for (const Part& part : parts) {
    tokens_.push_back({&caches_.at(part.sequence), part.tokens, part.n_logits});
  }
  fast_forward(model_.config, *model_.packed, tokens_, workspace_, logits);
}

double cache_bytes(const Config& config, KvType type, std::size_t context) {
  return panel_cache_bytes(config, context, cache_form(type));
}

}  // namespace stagecraft
