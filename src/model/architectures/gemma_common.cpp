#include "model/architectures/gemma_common.h"

#include <cmath>

namespace stagecraft {

float gemma_embedding_scale(const DecoderSizes& sizes) {
  return std::sqrt(static_cast<float>(sizes.dim));
}

float gemma_attention_scale(const ConfigFields& fields) {
  const double scalar = fields.number_or("query_pre_attn_scalar", 256.0, 1e-6, kMaxDimension);
  return static_cast<float>(1.0 / std::sqrt(scalar));
}

float gemma_soft_cap(const ConfigFields& fields, std::string_view key, double default_value) {
  if (fields.is_null(key)) return 0.0f;
  return static_cast<float>(fields.number_or(key, default_value, 1e-3, 1e6));
}

void gemma_layer(DecoderWriter& w, std::size_t index, const GemmaLayer& layer) {
  const std::string at = w.layer(index), self = at + "self_attn.", mlp = at + "mlp.";
  w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
  w.qkv(w.n, self, layer.bias);
  if (layer.qk_norm) w.head_norms(self);
  w.rope(layer.rope);
  w.attention(layer.scale, layer.window, layer.soft_cap);
  w.linear("attn_proj", w.o, w.a, self + "o_proj", layer.bias);
  w.norm("attn_post_norm", w.o, w.o, at + "post_attention_layernorm");
  w.add("attn_residual");

  w.norm("mlp_norm", w.n, w.x, at + "pre_feedforward_layernorm");
  w.gate(w.n, mlp, ActivateStep::Function::GeluTanh);
  w.linear("down", w.o, w.g, mlp + "down_proj");
  w.norm("mlp_post_norm", w.o, w.o, at + "post_feedforward_layernorm");
  w.add("mlp_residual");
}

}  // namespace stagecraft
