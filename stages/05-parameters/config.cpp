#include "model/config.h"

#include "base/not_implemented.h"
#include "model/config_extensions.h"
#include "model/config_fields.h"
#include "model/family.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 5.1, first half. The contract is in src/model/config.h; the names in config.json are in the
// handout. `fields` reads a member by its name, and complains by that name if it is missing or
// makes no sense: size, size_or, number_or, flag_or, has, is_null (src/model/config_fields.h).
Config parse_config(const std::string& text, const std::string& where) {
  const Json json = parse_json_object(text, where);
  const ConfigFields fields(json, where);
  [[maybe_unused]] const Family& family = parse_family(fields);  // src/model/family.h

  Config config;
  config.model_type = family.model_type;
  // 1. the four sizes that every file gives: vocab_size, dim, ffn_dim, and n_layers, which is at
  //    most kMaxLayers
  // 2. n_heads; then n_kv_heads: what the file says; where it says nothing family.n_kv_heads; where
  //    that is 0, or where the file says null, as many as n_heads
  // 3. head_dim: what the file says; else family.head_dim; where that is 0, dim / n_heads
  // 4. an Error (base/error.h) that names the field where n_kv_heads does not divide n_heads, where
  //    dim / n_heads is not whole, or where head_dim is odd
  // 5. max_seq_len (else family.max_seq_len), norm_eps (from kMinEps to kMaxEps, else 1e-6),
  //    tied_embeddings (else false)
  // 6. the biases and qk_norm: "attention_bias" and "mlp_bias" count only in a family that reads
  //    them; the rest is in `family`
  NOT_IMPLEMENTED("stage 5.1: parse_config");

  // Given: what goes beyond sizes. They need the members above.
  refuse_foreign_arithmetic(fields);
  config.rope = parse_rope(fields, config.max_seq_len);
  config.windows = parse_windows(fields, config);
  config.eos_ids = parse_eos_ids(fields, config.vocab_size);
  return config;
}

}  // namespace stagecraft
