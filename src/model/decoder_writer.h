#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/config_fields.h"
#include "model/decoder_fields.h"
#include "model/plan.h"
#include "model/plan_writer.h"

namespace stagecraft {

// The steps that decoder-only models share. Each file of architectures/ writes those that fit, and
// the rest itself. Nothing here depends on the name of an architecture.

// The slopes of ALiBi, one per head (Press et al. 2021): 2^(-8 i / n) for i = 1 to n, if n is a
// power of two. Otherwise the slopes of the next smaller power come first, and then the first,
// third, fifth, ... slope of twice that power.
std::vector<float> alibi_slopes(std::size_t n_heads);

// The names of an architecture's tensors, and the forms of its norms and its head.
struct DecoderStyle {
  NormStep::Kind norm = NormStep::Kind::Rms;
  bool norm_weight = true, norm_bias = true;  // whether LayerNorm has them
  float norm_plus = 0.0f;                     // added to the weight of every norm (Weight::plus)
  bool gated = true;  // whether the feed-forward block has a gate (and a buffer u)
  bool head_bias = false;
  RopeStep::Pairs pairs = RopeStep::Pairs::Halves;  // which columns RoPE pairs
  std::string embedding = "model.embed_tokens";
  std::string layers = "model.layers.";
  std::string final_norm = "model.norm";
  std::string head = "lm_head";
  // Whether fused_qkv and stacked_qkv read q_proj, k_proj and v_proj instead (kQkvApart).
  bool qkv_apart = false;
};

// The Storage of a linear whose weight is rows of a larger matrix. The matrix has `of` rows; the
// weight begins at row `first`. With a block, it is `block` rows of each `stride` rows
// (Storage::row_block).
Storage rows_of(std::size_t of, std::size_t first, std::size_t block = 0, std::size_t stride = 0);

// The text model of a release that may also read images. Such a release keeps the text model's
// fields in an object "text_config", and its tensors below "model.language_model.".
struct TextModel {
  ConfigFields fields;
  std::string prefix;  // of the names of its tensors
  DecoderStyle style;  // with this prefix
};
// alone: the "model_type" of a file that contains only the text model. Throws Error if a file of
// another type has no "text_config".
TextModel text_config(const ConfigFields& fields, std::string_view alone);

// A model file of another format may store q, k and v as three matrices where a folder has one
// (kStoredFields).
inline constexpr std::string_view kQkvApart = "stored_qkv_apart";

// Writes the steps of a decoder. These buffers are used in every layer:
//   x  the residual stream        n  x after a norm
//   q, k, v, a  of attention      o  the result of a block, which is added to x
//   g, u  of the feed-forward block
// Plan and sizes must outlive the writer.
class DecoderWriter : public PlanWriter {
 public:
  DecoderWriter(std::string model_type, const DecoderSizes& sizes, Plan& plan,
                DecoderStyle style = {});

  // x = scale * embedding[token]
  void embedding(float scale = 1.0f) { embedding_to(x, scale); }
  // The same into the buffer `out`; the table is as wide as this buffer.
  void embedding_to(BufferId out, float scale = 1.0f);
  // x = embedding[token] + positions[position]; `positions` is a tensor's name without ".weight".
  // Position 0 is row first_row of this tensor.
  void embedding_with_positions(const std::string& positions, std::size_t first_row = 0);
  // The table of that tensor, with the rows of all positions: its shape is
  // [first_row + max_positions, dim].
  WeightId positions(const std::string& tensor, std::size_t first_row);
  using PlanWriter::frequencies;
  FrequenciesId frequencies(const RopeConfig& rope);
  // For RoPE of the first columns of each head.
  FrequenciesId frequencies(const RopeConfig& rope, std::size_t columns);

  // Begins a layer; returns the prefix of the names of its tensors: "model.layers.3."
  std::string layer(std::size_t index);

  // tensor: its name without ".weight". group: numbers per group; 0: a row is one group.
  void norm(std::string name, BufferId out, BufferId in, const std::string& tensor,
            std::size_t group = 0);
  // The norm of each head of q, then of k: at + "q_norm", at + "k_norm".
  void head_norms(const std::string& at);
  // LayerNorm of each head of q or k, with a weight per head and no bias.
  void norm_of_heads(std::string name, BufferId heads, const std::string& tensor);
  // q, k, v = linear(in; at + "q_proj", ...)
  void qkv(BufferId in, const std::string& at, bool bias);
  // Clips every number of q, k and v to the range from -limit to limit. Does nothing without a
  // limit.
  void clip_qkv(std::optional<float> limit);
  // As qkv, but q, k and v are rows of one matrix: the rows of the queries that share the first key
  // head, of this key head, of its value head; then those for the next key head.
  void fused_qkv(BufferId in, const std::string& tensor, bool bias);
  // As fused_qkv, but all rows of q come first, then those of k, then those of v. transposed: the
  // matrix is stored as [inputs, outputs].
  void stacked_qkv(BufferId in, const std::string& tensor, bool bias, bool transposed = false);
  void rope(FrequenciesId rope);  // rotates q and k
  // Stores k and v in a new cache; a = attention(q, cache).
  void attention(float scale, std::size_t window = 0, float soft_cap = 0.0f,
                 std::vector<float> slopes = {}, WeightId sinks = kNone);
  // out = short_conv(in), with a new state.
  void short_conv(std::string name, BufferId out, BufferId in, const std::string& tensor,
                  std::size_t n_taps, bool bias);
  // g = f(linear(in; at + "gate_proj")) * linear(in; at + "up_proj")
  void gate(BufferId in, const std::string& at, ActivateStep::Function function, bool bias = false);
  // As gate, but gate and up are rows of one matrix: first those of gate, then those of up.
  void stacked_gate(BufferId in, const std::string& tensor, ActivateStep::Function function,
                    bool bias = false);
  void activate(ActivateStep::Function function);  // g = f(g) * u
  // The routing weights of the experts: how.x = linear(in; router), then the RouteStep `how`.
  // prefix: of the names of both steps. bias: whether the linear has a bias.
  void route(const std::string& prefix, BufferId in, const std::string& router,
             const RouteStep& how, bool bias = false);
  // The weights of an expert that reads `in` and writes `out`.
  ExpertsStep::Expert expert(BufferId in, BufferId out, std::size_t width, const std::string& gate,
                             const std::string& up, const std::string& down);
  // A feed-forward block without a gate: o = linear(f(linear(in; first)); second).
  void mlp(BufferId in, const std::string& first, const std::string& second,
           ActivateStep::Function function, bool bias, const Storage& stored = {});
  // x += scale * o
  void add(std::string name, float scale = 1.0f);
  // logits = linear(norm(x); head), multiplied by scale, then soft-capped. Calls select() and
  // head().
  void logits(float scale = 1.0f, float soft_cap = 0.0f);
  // select: later steps compute only the rows to be scored. head: the logits; the table of the head
  // is as wide as `in`.
  void select();
  void head(BufferId in, float scale = 1.0f, float soft_cap = 0.0f);

  const BufferId x, n, q, k, v, a, o, g, u;

 private:
  WeightId table(bool head, BufferId buffer);

  const DecoderSizes& sizes_;
  const DecoderStyle style_;
};

}  // namespace stagecraft
