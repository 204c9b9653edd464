#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/config_fields.h"
#include "model/plan.h"

namespace stagecraft {

// What decoder-only models have in common. A file of this folder uses of it what fits, and writes
// the rest itself; it knows no architecture by name.

// The sizes that nearly every config.json names alike.
struct DecoderSizes {
  std::size_t vocab_size = 0, dim = 0, ffn_dim = 0, n_layers = 0;
  std::size_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::size_t max_seq_len = 0;
  float norm_eps = 0.0f;
  bool tied = false;  // embedding and head are one table
  std::vector<TokenId> eos_ids;

  std::size_t q_dim() const { return n_heads * head_dim; }
  std::size_t kv_dim() const { return n_kv_heads * head_dim; }
};

// What transformers takes where a file does not say.
struct DecoderDefaults {
  std::size_t vocab_size;
  std::size_t max_seq_len;
  bool tied = false;
  double norm_eps = 1e-6;
  std::size_t n_kv_heads = 0;  // 0: as many as query heads
  std::size_t head_dim = 0;    // 0: hidden_size / num_attention_heads
  std::size_t ffn_factor = 0;  // the feed-forward width in units of the width; 0: must be given
};

// What an architecture calls these fields.
struct SizeNames {
  std::string_view dim = "hidden_size";
  std::string_view ffn_dim = "intermediate_size";
  std::string_view n_layers = "num_hidden_layers";
  std::string_view n_heads = "num_attention_heads";
  std::string_view max_seq_len = "max_position_embeddings";
  std::string_view norm_eps = "rms_norm_eps";
};

// Throws Error naming the field that is missing, out of range or fits no other.
DecoderSizes parse_sizes(const ConfigFields& fields, const DecoderDefaults& defaults,
                         const SizeNames& names = {});

// Throws Error unless `key` is absent or one of these.
void expect_text(const ConfigFields& fields, std::string_view key,
                 std::initializer_list<std::string_view> expected);
// Throws Error if `key` is true.
void expect_false(const ConfigFields& fields, std::string_view key);

// Throws Error if one of `keys` is there; `expected` says what should stand in its place.
void expect_absent(const ConfigFields& fields, std::span<const std::string_view> keys,
                   std::string_view expected);
// "gelu_new", "gelu" and the like: the function of `key`, or of `usual` where the file does not
// say. Throws Error for another activation.
ActivateStep::Function parse_activation(const ConfigFields& fields, std::string_view key,
                                        std::string_view usual);

// "theta 10000, linear x 8"
std::string rope_text(const RopeConfig& rope);

// How an architecture names its tensors, and what its norms and its head are.
struct DecoderStyle {
  NormStep::Kind norm = NormStep::Kind::Rms;
  float norm_plus = 0.0f;  // added to the weight of every norm (Weight::plus)
  bool gated = true;       // whether the feed-forward block has a gate: buffer u
  bool head_bias = false;
  std::string embedding = "model.embed_tokens";
  std::string layers = "model.layers.";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";
};

// Writes the steps of a decoder. Its buffers are those of every layer:
//   x  the residual stream        n  x after a norm
//   q, k, v, a  of attention      o  what a block adds to x
//   g, u  of the feed-forward block
class DecoderWriter {
 public:
  DecoderWriter(std::string model_type, const DecoderSizes& sizes, Plan& plan,
                DecoderStyle style = {});

  // x = scale * embedding[token]
  void embedding(float scale = 1.0f);
  // x = embedding[token] + positions[position]; `positions` is a tensor's name without ".weight".
  void embedding_with_positions(const std::string& positions);
  FrequenciesId frequencies(const RopeConfig& rope);
  // Of the first columns of each head.
  FrequenciesId frequencies(const RopeConfig& rope, std::size_t columns);

  // Begins a layer; returns what the names of its tensors begin with: "model.layers.3."
  std::string layer(std::size_t index);

  // `weight` is a tensor's name without ".weight". The norm's groups are `group` wide, or rows.
  void norm(std::string name, BufferId out, BufferId in, const std::string& weight,
            std::size_t group = 0);
  // rows: how the weight and its bias are stored (PlanWriter::linear).
  void linear(std::string name, BufferId out, BufferId in, const std::string& weight,
              bool bias = false, const Weight& rows = {});
  // The same of some rows of a taller matrix.
  void linear_rows(std::string name, BufferId out, BufferId in, const std::string& weight,
                   std::size_t first_row, std::size_t of_rows);
  // q, k, v = linear(in; at + "q_proj", ...)
  void qkv(BufferId in, const std::string& at, bool bias);
  void rope(FrequenciesId rope);  // of q and k
  // The cache takes k and v; a = attention(q, cache).
  void attention(float scale, std::size_t window = 0, float soft_cap = 0.0f);
  // g = f(linear(in; at + "gate_proj")) * linear(in; at + "up_proj")
  void gate(BufferId in, const std::string& at, ActivateStep::Function function, bool bias = false);
  void activate(ActivateStep::Function function);  // g = f(g) * u
  // A feed-forward block without a gate: o = linear(f(linear(in; first)); second).
  void mlp(BufferId in, const std::string& first, const std::string& second,
           ActivateStep::Function function, bool bias, const Weight& rows = {});
  // x += scale * o
  void add(std::string name, float scale = 1.0f);
  // logits = linear(norm(x); head), times scale, capped
  void logits(float scale = 1.0f, float soft_cap = 0.0f);

  const BufferId x, n, q, k, v, a, o, g, u;

 private:
  WeightId table(bool head);

  const DecoderSizes& sizes_;
  Plan& plan_;
  PlanWriter writer_;
  const DecoderStyle style_;
};

}  // namespace stagecraft
