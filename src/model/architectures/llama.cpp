// Llama, Mistral, Qwen2 and Qwen3: one plan, in which a few parts may be absent.
#include "model/architectures/llama.h"

#include "model/decoder_writer.h"

namespace stagecraft {

Plan llama_plan(const Config& config, ActivateStep::Function function) {
  const DecoderSizes sizes = {.vocab_size = config.vocab_size,
                              .dim = config.dim,
                              .ffn_dim = config.ffn_dim,
                              .n_layers = config.n_layers,
                              .n_heads = config.n_heads,
                              .n_kv_heads = config.n_kv_heads,
                              .head_dim = config.head_dim,
                              .max_seq_len = config.max_seq_len,
                              .norm_eps = config.norm_eps,
                              .tied = config.tied_embeddings,
                              .eos_ids = config.eos_ids};
  const float scale = sizes.score_scale(config.rope);

  Plan plan;
  DecoderWriter w(config.model_type, sizes, plan);
  const FrequenciesId rope = w.frequencies(config.rope);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, config.qkv_bias);
    if (config.qk_norm) w.head_norms(self);
    w.rope(rope);
    w.attention(scale, config.windows[i]);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", config.o_bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, function, config.mlp_bias);
    w.linear("down", w.o, w.g, mlp + "down_proj", config.mlp_bias);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

}  // namespace stagecraft
