#pragma once

#include "model/decoder_writer.h"

namespace stagecraft {

// Code that the Gemma models share. Differences from Llama: embeddings are scaled by sqrt(dim),
// norms multiply with 1 + weight, the gate's activation function is GELU in its tanh form, and
// head_dim is a size of its own.
inline constexpr float kGemmaNormPlus = 1.0f;
float gemma_embedding_scale(const DecoderSizes& sizes);

// 1 / sqrt(query_pre_attn_scalar). From Gemma 2 on, scores are multiplied by it.
float gemma_attention_scale(const ConfigFields& fields);

// The soft cap of scores or logits, which become cap * tanh(x / cap) (Gemma Team 2024, Gemma 2);
// `default_value` if the file does not give it. 0: no cap, as for null.
float gemma_soft_cap(const ConfigFields& fields, std::string_view key, double default_value);

// A layer of Gemma 2 and 3: a norm before and after each half.
struct GemmaLayer {
  FrequenciesId rope = kNone;
  float scale = 0.0f;
  std::size_t window = 0;
  float soft_cap = 0.0f;
  bool bias = false;
  bool qk_norm = false;  // RMSNorm of each head of q and k, before RoPE
};
void gemma_layer(DecoderWriter& w, std::size_t index, const GemmaLayer& layer);

}  // namespace stagecraft
