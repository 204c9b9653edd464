#pragma once

#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/token.h"
#include "operators/activation_function.h"
#include "operators/route.h"

namespace stagecraft {

// A model as a short list of steps over named buffers. One file of architectures/ writes the plan
// from a config.json; everything else reads it: the loader (which tensors, of which shapes), the
// backends (what to compute), `info` (memory, parameters), `trace` (the names of the steps),
// `convert`.
//
// A plan describes the arithmetic, and which part of which tensor each weight is. It knows no
// number formats, no instruction sets, no threads and no file formats. docs/model-architectures.md
// prints the plans of real models (plan_text.h).

// Indices into Plan::buffers, weights, caches, states and frequencies. kNone: no such object.
using BufferId = int;
using WeightId = int;
using CacheId = int;
using StateId = int;
using FrequenciesId = int;
inline constexpr int kNone = -1;

// An activation: one row of `width` numbers per token of the pass.
struct Buffer {
  std::string name;  // "x": the residual stream
  std::size_t width = 0;
};

// Which part of a stored tensor a weight is. {}: the whole tensor, as it is.
struct Storage {
  // If the stored tensor has more rows: this weight is some of its of_rows rows, from first_row on.
  std::size_t first_row = 0;
  std::size_t of_rows = 0;  // 0: the weight has all rows
  // If the rows of several weights alternate (GPT-NeoX: q, k and v of one head, then of the next):
  // blocks of row_block rows belong to this weight, and a block begins every row_stride rows.
  std::size_t row_block = 0;  // 0: the rows are contiguous
  std::size_t row_stride = 0;
  bool transposed = false;  // a matrix that is stored as [inputs, outputs]
  // If the stored matrix has more inputs (columns): this weight begins at column first_input, and
  // the stored matrix has of_inputs columns.
  std::size_t first_input = 0;
  std::size_t of_inputs = 0;  // 0: the weight has all columns
  // If one tensor holds several weights, one after the other: the index of this weight, and how
  // many there are.
  std::size_t slice = 0;
  std::size_t of_slices = 0;  // 0: the weight has its own tensor
  // If a vector is stored as a matrix: the number of rows of this matrix. 0: stored as a vector.
  std::size_t folded_rows = 0;
  // The taps of a convolution, which PyTorch stores as [columns, 1, taps].
  bool taps = false;

  bool operator==(const Storage&) const = default;
  // Whether the rows in the file can be used as they are, without a copy.
  bool is_contiguous() const { return row_block == 0 && !transposed && of_inputs == 0; }
  // The row of the stored tensor that holds row i of the weight.
  std::size_t row(std::size_t i) const {
    return first_row + (row_block == 0 ? i : i / row_block * row_stride + i % row_block);
  }
};

// A matrix or vector that the model needs, and where it lies in the tensors of the file.
struct Weight {
  std::string name;                // of its tensor, in a Hugging Face checkpoint
  std::vector<std::size_t> shape;  // [outputs, inputs], or [n] for a norm or a bias
  std::string or_name = {};        // another name that a file may use: one table with two uses
  float plus = 0.0f;               // added to every element: Gemma stores the norm's weight - 1
  Storage stored = {};
  // Whether this weight and the rows that it is multiplied with are never rounded to fewer bits.
  // Otherwise a router could choose other experts. Also used for the latent attention of DeepSeek.
  bool exact = false;

  bool is_matrix() const { return shape.size() == 2; }
  std::size_t elements() const {
    return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
  }
};

// Which of the two positions of a token RoPE uses. They differ only under a PromptRule; see
// Placement.
enum class Positions { Text, Answer };

// The angle by which RoPE rotates each pair of a head, in radians per position.
struct Frequencies {
  std::string name;           // "theta 10000"
  std::vector<float> values;  // [head_dim / 2], or fewer: see RopeStep
  Positions positions = Positions::Text;
};

// For a model that numbers the positions of prompt and answer separately, and whose prompt tokens
// see the whole prompt, later tokens too (GLM, Du et al. 2022). Placement gives the positions of
// each token.
struct PromptRule {
  TokenId end = 0;             // the first token with this id ends the prompt and begins the answer
  std::vector<TokenId> masks;  // mark the place of the answer: the first that the prompt has counts
};

// The keys and values of all positions of a text, for one layer. They outlive a pass.
struct CacheShape {
  std::size_t n_kv_heads = 0;
  std::size_t head_dim = 0;

  std::size_t width() const { return n_kv_heads * head_dim; }
};

// The state of a layer, whose size does not grow with the text. All numbers are 0 before the first
// token. Each token overwrites some of them, so a text with a state can only be cut to length 0, or
// not at all (Sequence::truncate).
struct StateShape {
  std::size_t rows = 0;
  std::size_t width = 0;
};

// ---- steps ------------------------------------------------------------------------------------
// `out` is written; the other buffers are read, except x, which is read and written. Each kind of
// step says which objects of the plan it uses; kNone may be among the ids:
//   inputs()      the buffers that it reads
//   output()      the buffer that it writes; kNone: it only stores keys and values
//   parameters()  its weights: for an embedding its whole tables, for experts those of all experts
//   cache, state  a step that uses a cache or a state has a member with this name
using Ids = std::vector<int>;

// out[t] = scale * table[token t] + positions[position of t]; the term of an absent table is left
// out. Without both tables, out[t] is the row that the caller of the pass provides for token t
// (Input::rows).
struct EmbedStep {
  BufferId out;
  WeightId table;  // [vocab_size, width], or kNone
  float scale = 1.0f;
  WeightId positions = kNone;  // [Plan::max_positions, width]

  Ids inputs() const { return {}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {table, positions}; }
};

// The norm of each group of columns of a row; out may be in:
//   Rms    out = weight * in / sqrt(mean(in^2) + eps)                     (Zhang and Sennrich 2019)
//   Layer  out = weight * (in - mean(in)) / sqrt(variance(in) + eps) + bias      (Ba et al. 2016)
struct NormStep {
  enum class Kind { Rms, Layer };
  BufferId out, in;
  WeightId weight;        // [group]: all groups share it; [width of in]: one per group; kNone: 1
  std::size_t group = 0;  // numbers per group: the width of `in`, or the size of a head
  float eps = 0.0f;
  Kind kind = Kind::Rms;
  WeightId bias = kNone;  // [group], only for Layer; kNone: 0

  Ids inputs() const { return {in}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {weight, bias}; }
};

// out = in * weight^T + bias
struct LinearStep {
  BufferId out, in;
  WeightId weight;  // [outputs, inputs]
  WeightId bias = kNone;

  Ids inputs() const { return {in}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {weight, bias}; }
};

// An activation function, times the buffer that it gates; out may be gate or up:
//   out = f(gate) * up, or f(gate) without up
// If up is wider than out, the columns of up from first_column on are used.
struct ActivateStep {
  using Function = ActivationFunction;
  BufferId out, gate, up;  // up may be kNone
  Function function = Function::Silu;
  std::size_t first_column = 0;  // of up

  Ids inputs() const { return {gate, up}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {}; }
};

// Chooses the experts of each row, in place. Before the step, x holds one score per expert. After
// it, x holds the routing weight of each expert, which is 0 for an expert that is not chosen:
//   p    = softmax(x), or 1 / (1 + e^-x) of each
//   c    = p + bias
//   x[e] = p[e] for the n_chosen largest c, of equal ones the first; 0 for the others
//   normed: the chosen routing weights are divided by their sum; then all are multiplied by scale
// With groups, only experts of the best groups can be chosen (operators/route.h).
struct RouteStep {
  enum class Score { Softmax, Sigmoid };
  BufferId x;                // width: the number of experts
  std::size_t n_chosen = 0;  // at most the number of experts in the chosen groups
  bool normed = false;
  Score score = Score::Softmax;
  WeightId bias = kNone;  // [width of x]
  float scale = 1.0f;
  RouteGroups groups = {};

  Ids inputs() const { return {x}; }
  BufferId output() const { return x; }
  Ids parameters() const { return {bias}; }
};

// A feed-forward block of many experts (Shazeer et al. 2017). An expert is computed only for the
// rows in which its routing weight is not 0. The weights of experts without such a row are not
// read:
//   g, u = gate_e . in + bias, up_e . in + bias
//   out  = sum over e of routing_weights[e] * (down_e . (f(g) * u) + bias)
// With a limit, f(g) * u is the clamped SwiGLU of gpt-oss (operators/clamped_swiglu.h).
struct ExpertsStep {
  struct Expert {
    WeightId gate, up;  // [hidden, width of in]
    WeightId down;      // [width of out, hidden]
    WeightId gate_bias = kNone, up_bias = kNone, down_bias = kNone;
  };
  BufferId out, in, routing_weights;
  std::vector<Expert> experts;  // [width of routing_weights], all of one shape
  ActivateStep::Function function = ActivateStep::Function::Silu;
  float limit = 0.0f;  // 0: no limit
  float alpha = 1.0f;  // used only with a limit

  Ids inputs() const { return {in, routing_weights}; }
  BufferId output() const { return out; }
  Ids parameters() const;
};

// x += scale * in
struct AddStep {
  BufferId x, in;
  float scale = 1.0f;

  Ids inputs() const { return {x, in}; }
  BufferId output() const { return x; }
  Ids parameters() const { return {}; }
};

// x = scale * by * x, then one of two ways to keep every number in a range:
//   soft_cap  x = cap * tanh(x / cap)
//   clip      x = clip if x > clip, -clip if x < -clip
struct MapStep {
  BufferId x;
  float scale = 1.0f;
  float soft_cap = 0.0f;  // 0: no soft cap
  float clip = 0.0f;      // 0: no clip
  WeightId by = kNone;    // [1], or [width of x]: one number per column; kNone: 1

  Ids inputs() const { return {x}; }
  BufferId output() const { return x; }
  Ids parameters() const { return {by}; }
};

// Rotary position embedding of every head of x, in place. With fewer than head_dim / 2 frequencies,
// only some columns of each head are rotated, two per frequency. Which two columns form a pair:
//   Halves      i and i + half of the rotated columns     (operators/rope.h)
//   Neighbours  2i and 2i + 1                             (operators/neighbour_rope.h)
struct RopeStep {
  enum class Pairs { Halves, Neighbours };
  BufferId x;
  FrequenciesId frequencies;
  std::size_t head_dim;
  Pairs pairs = Pairs::Halves;
  std::size_t first_column = 0;  // of each head that is rotated

  // Whether the other step rotates its heads as this one does.
  bool same_rotation(const RopeStep& other) const {
    return frequencies == other.frequencies && head_dim == other.head_dim && pairs == other.pairs &&
           first_column == other.first_column;
  }
  Ids inputs() const { return {x}; }
  BufferId output() const { return x; }
  Ids parameters() const { return {}; }
};

// Appends the keys and values of this pass to the cache.
struct StoreStep {
  CacheId cache;
  BufferId k, v;

  Ids inputs() const { return {k, v}; }
  BufferId output() const { return kNone; }
  Ids parameters() const { return {}; }
};

// Attention of q over the tokens that each token sees (Placement), usually all positions up to its
// own. An earlier step of the pass has stored the keys and values; layers may share a cache.
//   scores = soft_cap(scale * q . k) + slope of the head * (position of k - position of q)
//   out = softmax(scores) . v
// A sink is the score of one more key that has no value: it counts in the sum of softmax, and adds
// nothing to the result. A plan with a PromptRule has neither windows nor slopes.
struct AttentionStep {
  BufferId out, q;
  CacheId cache;
  std::size_t n_heads = 0;  // a multiple of n_kv_heads of the cache; neighbours share a kv head
  float scale = 0.0f;
  std::size_t window = 0;  // positions that a query sees, its own included; 0: all before it
  float soft_cap = 0.0f;   // 0: no soft cap
  std::vector<float> slopes = {};  // [n_heads], of ALiBi (Press et al. 2021); empty: no ALiBi
  WeightId sinks = kNone;          // [n_heads]; kNone: no sinks

  Ids inputs() const { return {q}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {sinks}; }
};

// A causal convolution of each column of `in` by itself, over its last n_taps rows:
//   out[t][c] = bias[c] + sum over j of taps[c][j] * in[t - n_taps + 1 + j][c]
// The state holds the last n_taps - 1 rows of `in`. Rows before the first token are 0.
struct ShortConvStep {
  BufferId out, in;  // of the same width; must not be the same buffer
  WeightId taps;     // [width, n_taps]
  StateId state;     // [n_taps - 1, width]
  WeightId bias = kNone;

  Ids inputs() const { return {in}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {taps, bias}; }
};

// The gated delta rule (Yang et al. 2024; operators/gated_delta.h). Each head keeps a matrix, which
// maps keys to values. Each token multiplies the matrix by a number below 1 (the matrix fades),
// corrects it, and reads it with the query.
struct DeltaStep {
  BufferId out;          // [heads * value_dim]
  BufferId in;           // [2 * n_key_heads * key_dim + heads * value_dim]: q, k and v side by side
  BufferId beta, decay;  // [heads]
  WeightId rate, shift;  // [heads]
  StateId state;         // [heads * key_dim, value_dim]
  std::size_t n_key_heads = 0, key_dim = 0;
  bool in_turn = false;  // as DeltaShape::in_turn

  Ids inputs() const { return {in, beta, decay}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {rate, shift}; }
};

// Multiplies each head of `in` by its own matrix: out_h = weights[h] . in_h. It uses the columns of
// in_h from first_column on.
struct HeadsLinearStep {
  BufferId out, in;               // each of weights.size() heads
  std::vector<WeightId> weights;  // [width of a head of out, inputs], all of the same shape
  std::size_t first_column = 0;

  Ids inputs() const { return {in}; }
  BufferId output() const { return out; }
  Ids parameters() const { return weights; }
};

// Each head of `out` is the head of `a` followed by the head of `b`.
struct JoinStep {
  BufferId out, a, b;
  std::size_t n_heads = 1;

  Ids inputs() const { return {a, b}; }
  BufferId output() const { return out; }
  Ids parameters() const { return {}; }
};

// From this step on, buffers hold only the rows whose logits are wanted.
struct SelectStep {
  BufferId x;  // the buffer that later steps read

  Ids inputs() const { return {x}; }
  BufferId output() const { return x; }
  Ids parameters() const { return {}; }
};

using StepKind = std::variant<EmbedStep, NormStep, LinearStep, ActivateStep, RouteStep, ExpertsStep,
                              AddStep, MapStep, RopeStep, StoreStep, AttentionStep, ShortConvStep,
                              DeltaStep, HeadsLinearStep, JoinStep, SelectStep>;

struct Step {
  StepKind kind;
  int layer = kNone;      // kNone: before the first layer or after the last
  std::string name = {};  // of its result in a trace ("q_rope"); "" if it computes nothing new
};

struct Plan {
  std::string model_type;  // as in config.json: "llama", "gemma2"
  std::size_t vocab_size = 0;
  std::size_t n_layers = 0;
  std::size_t max_seq_len = 0;   // the context that the model was trained for
  std::vector<TokenId> eos_ids;  // tokens that end a text; may be empty
  // Rows of the table of learned positions: no text can be longer. 0: no such table.
  std::size_t max_positions = 0;
  std::optional<PromptRule> prompt;  // nullopt: token i has position i and sees tokens 0 to i
  // A prefix that files may leave out of the names of tensors ("transformer.").
  std::string optional_prefix;
  // Tensors that files may hold although no step needs them: a suffix of their names (masks of
  // attention), or, if it ends with a dot, a prefix.
  std::vector<std::string> unused;

  std::vector<Buffer> buffers;
  std::vector<Weight> weights;
  std::vector<CacheShape> caches;
  std::vector<StateShape> states;
  std::vector<Frequencies> frequencies;
  std::vector<Step> steps;
  BufferId logits = kNone;  // [rows to be scored, vocab_size]

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<std::size_t>(id)]; }
  const Weight& weight(WeightId id) const { return weights[static_cast<std::size_t>(id)]; }
  const CacheShape& cache(CacheId id) const { return caches[static_cast<std::size_t>(id)]; }
  const StateShape& state(StateId id) const { return states[static_cast<std::size_t>(id)]; }
  const Frequencies& table(FrequenciesId id) const {
    return frequencies[static_cast<std::size_t>(id)];
  }
};

// Of a step of any kind, without kNone: its inputs(), output() and parameters().
std::vector<BufferId> buffers_read(const StepKind& kind);
std::vector<WeightId> weights_read(const StepKind& kind);
BufferId buffer_written(const StepKind& kind);  // kNone for a step that only writes a cache
// By WeightId: whether a step reads the weight. Always true, except in a part of a model
// (model/plan_split.h).
std::vector<bool> weights_of_steps(const Plan& plan);
// The buffer whose rows the caller of a pass provides; kNone: the plan reads tokens.
BufferId row_input(const Plan& plan);
// The buffer that the layers add to: SelectStep::x. kNone: the plan has no such step.
BufferId residual_stream(const Plan& plan);
// Whether the contents of `buffer` after this step are still read: by a later step, or as logits.
bool is_read_after(const Plan& plan, std::size_t step, BufferId buffer);
// The AddStep at index `step` if it computes x += result (scale 1) and no later step reads
// `result`; else null. The step that computes `result` may then write the sum instead.
const AddStep* sum_after(const Plan& plan, std::size_t step, BufferId result);

// The most positions that a text may have in a cache with this capacity.
std::size_t context_limit(const Plan& plan, std::size_t capacity);

// Throws Error, as forward(), if a text of `length` positions in a cache with this capacity has no
// room for these tokens, or if a token is not in the vocabulary.
void check_next_tokens(const Plan& plan, std::span<const TokenId> tokens, std::size_t length,
                       std::size_t capacity);

// Whether a step writes something that outlives the pass: keys and values, or a state.
bool writes_state(const StepKind& kind);
// The cache or the state that a step uses, or kNone.
CacheId cache_of(const StepKind& kind);
StateId state_of(const StepKind& kind);

// The largest number of query heads of a layer; 0 if no layer has attention.
std::size_t max_heads(const Plan& plan);
// The attention of a layer; null if it has none.
const AttentionStep* attention_of(const Plan& plan, int layer);

// expert_width: the width inside an expert. most_chosen: the most experts whose routing weight in a
// row is not 0.
std::size_t expert_width(const Plan& plan, const ExpertsStep& step);
std::size_t most_chosen(const Plan& plan, const ExpertsStep& step);

// The number of elements of all matrices. A table with two uses counts twice.
std::size_t matrix_elements(const Plan& plan);

}  // namespace stagecraft
