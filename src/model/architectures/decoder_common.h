#pragma once

#include <initializer_list>
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
};

// Throws Error naming the field that is missing, out of range or fits no other.
DecoderSizes parse_sizes(const ConfigFields& fields, const DecoderDefaults& defaults);

// Throws Error unless `key` is absent or one of these.
void expect_text(const ConfigFields& fields, std::string_view key,
                 std::initializer_list<std::string_view> expected);
// Throws Error if `key` is true.
void expect_false(const ConfigFields& fields, std::string_view key);

// "theta 10000, linear x 8"
std::string rope_text(const RopeConfig& rope);

// Writes the steps of a decoder. Its buffers are those of every layer:
//   x  the residual stream        n  x after a norm
//   q, k, v, a  of attention      o  what a block adds to x
//   g, u  of the feed-forward block
class DecoderWriter {
 public:
  // norm_plus: added to the weight of every norm (Weight::plus).
  DecoderWriter(std::string model_type, const DecoderSizes& sizes, Plan& plan,
                float norm_plus = 0.0f);

  // x = scale * embedding[token]
  void embedding(float scale = 1.0f);
  FrequenciesId frequencies(const RopeConfig& rope);

  // Begins a layer; returns what the names of its tensors begin with: "model.layers.3."
  std::string layer(std::size_t index);

  // `weight` is a tensor's name without ".weight". The norm's groups are `group` wide, or rows.
  void norm(std::string name, BufferId out, BufferId in, const std::string& weight,
            std::size_t group = 0);
  void linear(std::string name, BufferId out, BufferId in, const std::string& weight,
              bool bias = false);
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
  const float norm_plus_;
};

}  // namespace stagecraft
