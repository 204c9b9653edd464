#pragma once

#include <initializer_list>
#include <optional>
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
  // 1 / sqrt(head_dim), by which most architectures scale scores.
  float score_scale() const;
};

// Fields that architectures without them set by the number of heads: none may stand in a file.
inline constexpr std::string_view kSetByHeads[] = {"num_key_value_heads", "head_dim"};

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
  std::string_view n_kv_heads = "num_key_value_heads";
  std::string_view head_dim = "head_dim";
  std::string_view vocab_size = "vocab_size";
  std::string_view max_seq_len = "max_position_embeddings";
  std::string_view norm_eps = "rms_norm_eps";
};

// Throws Error naming the field that is missing, out of range or fits no other.
DecoderSizes parse_sizes(const ConfigFields& fields, const DecoderDefaults& defaults,
                         const SizeNames& names = {});

// The one of two names for the same field that the file has. Throws Error if it has both with
// different values.
std::string_view either_name(const ConfigFields& fields, std::string_view one,
                             std::string_view other);

// Throws Error unless `key` is absent or one of these.
void expect_text(const ConfigFields& fields, std::string_view key,
                 std::initializer_list<std::string_view> expected);
// Throws Error if `key` is true, or false.
void expect_false(const ConfigFields& fields, std::string_view key);
void expect_true(const ConfigFields& fields, std::string_view key);

// Throws Error if one of `keys` is there; `expected` says what should stand in its place.
void expect_absent(const ConfigFields& fields, std::span<const std::string_view> keys,
                   std::string_view expected);
// "gelu_new", "gelu" and the like: the function of `key`, or of `usual` where the file does not
// say. Throws Error for another activation.
ActivateStep::Function parse_activation(const ConfigFields& fields, std::string_view key,
                                        std::string_view usual);

// The rope of one kind of layers, where those that slide and those that see everything have one
// each. Newer files hold an object per kind in "rope_parameters". In older ones "rope_scaling" is
// of the layers that see everything, and `theta_key` is the name of this kind's theta.
struct RopeOfKind {
  bool slides = false;
  std::string_view theta_key = "rope_theta";
  double theta = 10'000.0;                          // where the file does not say
  std::span<const std::string_view> honoured = {};  // as in parse_rope
};
RopeConfig parse_rope_of(const ConfigFields& fields, std::size_t max_seq_len,
                         const RopeOfKind& kind);
// "layer_types" of an architecture whose other layers are `other`: true for "full_attention".
// Throws Error for a third type, or another number of layers.
std::vector<bool> parse_attention_layers(const ConfigFields& fields, std::size_t n_layers,
                                         std::string_view other);
// "clip_qkv"; nullopt where the file does not say.
std::optional<float> parse_clip_qkv(const ConfigFields& fields);

// The slopes of ALiBi, one per head (Press et al. 2021).
std::vector<float> alibi_slopes(std::size_t n_heads);

// "swiglu", "geglu", "reglu": the name of the step f(gate) * up (Shazeer 2020).
const char* gated_name(ActivateStep::Function function);

// "theta 10000, linear x 8"
std::string rope_text(const RopeConfig& rope);

// How an architecture names its tensors, and what its norms and its head are.
struct DecoderStyle {
  NormStep::Kind norm = NormStep::Kind::Rms;
  bool norm_weight = true, norm_bias = true;  // of LayerNorm: whether it has them
  float norm_plus = 0.0f;                     // added to the weight of every norm (Weight::plus)
  bool gated = true;                          // whether the feed-forward block has a gate: buffer u
  bool head_bias = false;
  RopeStep::Pairs pairs = RopeStep::Pairs::Halves;  // that rope rotates
  std::string embedding = "model.embed_tokens";
  std::string layers = "model.layers.";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";
  bool qkv_apart = false;  // fused_qkv reads q_proj, k_proj and v_proj instead (kQkvApart)
};

// In a file that is no folder, q, k and v may be three matrices where a folder has one
// (kStoredFields).
inline constexpr std::string_view kQkvApart = "stored_qkv_apart";

// Writes the steps of a decoder. Its buffers are those of every layer:
//   x  the residual stream        n  x after a norm
//   q, k, v, a  of attention      o  what a block adds to x
//   g, u  of the feed-forward block
class DecoderWriter {
 public:
  DecoderWriter(std::string model_type, const DecoderSizes& sizes, Plan& plan,
                DecoderStyle style = {});

  // x = scale * embedding[token]
  void embedding(float scale = 1.0f) { embedding_to(x, scale); }
  // The same into another buffer, whose width the table has.
  void embedding_to(BufferId out, float scale = 1.0f);
  // x = embedding[token] + positions[position]; `positions` is a tensor's name without ".weight",
  // and position 0 its row first_row.
  void embedding_with_positions(const std::string& positions, std::size_t first_row = 0);
  WeightId positions(const std::string& weight, std::size_t first_row);
  FrequenciesId frequencies(const RopeConfig& rope);
  // Of the first columns of each head.
  FrequenciesId frequencies(const RopeConfig& rope, std::size_t columns);
  FrequenciesId frequencies(Frequencies table) { return writer_.frequencies(std::move(table)); }

  // Beside those of every layer.
  BufferId buffer(std::string name, std::size_t width) {
    return writer_.buffer(std::move(name), width);
  }
  WeightId weight(Weight weight) { return writer_.weight(std::move(weight)); }
  CacheId cache(CacheShape shape) { return writer_.cache(shape); }
  StateId state(StateShape shape) { return writer_.state(shape); }
  void step(std::string name, StepKind kind) { writer_.step(std::move(name), std::move(kind)); }

  // Begins a layer; returns what the names of its tensors begin with: "model.layers.3."
  std::string layer(std::size_t index);

  // `weight` is a tensor's name without ".weight". The norm's groups are `group` wide, or rows.
  void norm(std::string name, BufferId out, BufferId in, const std::string& weight,
            std::size_t group = 0);
  // Each head of q or k by LayerNorm with weights of its own, and no bias.
  void norm_of_heads(std::string name, BufferId heads, const std::string& weight);
  // rows: how the weight and its bias are stored (PlanWriter::linear).
  void linear(std::string name, BufferId out, BufferId in, const std::string& weight,
              bool bias = false, const Weight& rows = {});
  // The same of some rows of a taller matrix.
  void linear_rows(std::string name, BufferId out, BufferId in, const std::string& weight,
                   std::size_t first_row, std::size_t of_rows);
  // q, k, v = linear(in; at + "q_proj", ...)
  void qkv(BufferId in, const std::string& at, bool bias);
  // Every number of q, k and v that is beyond -limit or limit becomes that.
  void clip_qkv(std::optional<float> limit);
  // The same of one matrix: the rows of the queries that share the first key head, those of its
  // key, those of its value; then those of the next key head.
  void fused_qkv(BufferId in, const std::string& weight, bool bias);
  void rope(FrequenciesId rope);  // of q and k
  // The cache takes k and v; a = attention(q, cache).
  void attention(float scale, std::size_t window = 0, float soft_cap = 0.0f,
                 std::vector<float> slopes = {}, WeightId sinks = kNone);
  // out = short_conv(in), with a state of its own.
  void short_conv(std::string name, BufferId out, BufferId in, const std::string& weight,
                  std::size_t n_taps, bool bias);
  // g = f(linear(in; at + "gate_proj")) * linear(in; at + "up_proj")
  void gate(BufferId in, const std::string& at, ActivateStep::Function function, bool bias = false);
  void activate(ActivateStep::Function function);  // g = f(g) * u
  // Shares of experts: how.x = linear(in; router), then what RouteStep says. prefix: of the names
  // of both steps. bias: whether the linear has one.
  void route(const std::string& prefix, BufferId in, const std::string& router,
             const RouteStep& how, bool bias = false);
  // The weights of an expert that reads `in` and writes `out`.
  ExpertsStep::Expert expert(BufferId in, BufferId out, std::size_t width, const std::string& gate,
                             const std::string& up, const std::string& down);
  // A feed-forward block without a gate: o = linear(f(linear(in; first)); second).
  void mlp(BufferId in, const std::string& first, const std::string& second,
           ActivateStep::Function function, bool bias, const Weight& rows = {});
  // x += scale * o
  void add(std::string name, float scale = 1.0f);
  // logits = linear(norm(x); head), times scale, capped
  void logits(float scale = 1.0f, float soft_cap = 0.0f);
  // Its parts: what follows is computed for scored rows; the head, whose table is as wide as `in`.
  void select();
  void head(BufferId in, float scale = 1.0f, float soft_cap = 0.0f);

  const BufferId x, n, q, k, v, a, o, g, u;

 private:
  WeightId table(bool head, BufferId buffer);

  const DecoderSizes& sizes_;
  Plan& plan_;
  PlanWriter writer_;
  const DecoderStyle style_;
};

}  // namespace stagecraft
