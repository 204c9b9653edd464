#include "model/architectures/olmo_common.h"

namespace stagecraft {

void olmo_layer(DecoderWriter& w, std::size_t index, const OlmoLayer& layer) {
  const std::string at = w.layer(index), self = at + "self_attn.", mlp = at + "mlp.";
  w.qkv(w.x, self, layer.bias);
  w.norm("q_norm", w.q, w.q, self + "q_norm");
  w.norm("k_norm", w.k, w.k, self + "k_norm");
  w.rope(layer.rope);
  w.attention(layer.scale, layer.window);
  w.linear("attn_proj", w.o, w.a, self + "o_proj", layer.bias);
  w.norm("attn_post_norm", w.o, w.o, at + "post_attention_layernorm");
  w.add("attn_residual");

  w.gate(w.x, mlp, layer.function);
  w.linear("down", w.o, w.g, mlp + "down_proj");
  w.norm("mlp_post_norm", w.o, w.o, at + "post_feedforward_layernorm");
  w.add("mlp_residual");
}

}  // namespace stagecraft
