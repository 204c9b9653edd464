#pragma once

#include "model/architectures/decoder_common.h"

namespace stagecraft {

// What the Gemmas share. Beside Llama: embeddings are scaled by sqrt(dim), norms multiply with
// 1 + weight, the gate's activation is GELU in its tanh form, and head_dim is a size of its own.
inline constexpr float kGemmaNormPlus = 1.0f;
float gemma_embedding_scale(const DecoderSizes& sizes);

// From Gemma 2 on. "query_pre_attn_scalar": what the scores are divided by the root of.
float gemma_attention_scale(const ConfigFields& fields);

// A layer of Gemma 2 and 3: norms before and after each half.
struct GemmaLayer {
  FrequenciesId rope = kNone;
  float scale = 0.0f;
  std::size_t window = 0;
  float soft_cap = 0.0f;
  bool bias = false;
  bool qk_norm = false;  // of each head of q and k, before rope
};
void gemma_layer(DecoderWriter& w, std::size_t index, const GemmaLayer& layer,
                 const DecoderSizes& sizes);

}  // namespace stagecraft
