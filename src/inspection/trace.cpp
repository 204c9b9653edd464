#include "inspection/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/json_text.h"
#include "checkpoint/safetensors_writer.h"
#include "generation/text_memory.h"

namespace stagecraft {
namespace {

// Copies the results of each pass to their rows of the whole text. Every pass has the same
// activations in the same order; the first pass creates them.
class Collector {
 public:
  Collector(std::vector<Activation>& activations, std::size_t seq_len)
      : activations_(activations), seq_len_(seq_len) {}

  void begin_pass(std::size_t first, std::size_t q_len) {
    next_ = 0;
    first_ = first;
    q_len_ = q_len;
  }

  // value: [q_len, width], or attention probabilities [n_heads * q_len, kv_len].
  void add(int layer, std::string_view name, MatrixView<const float> value) {
    const std::size_t blocks = value.rows() / q_len_;  // 1, or n_heads
    if (next_ == activations_.size()) activations_.push_back(make(layer, name, blocks, value));
    const MatrixView<float> whole = activations_[next_++].values.view();
    for (std::size_t r = 0; r < value.rows(); ++r) {
      const auto row = value.row(r);
      std::copy(row.begin(), row.end(),
                whole.row(r / q_len_ * seq_len_ + first_ + r % q_len_).begin());
    }
  }

 private:
  Activation make(int layer, std::string_view name, std::size_t blocks,
                  MatrixView<const float> value) const {
    const bool per_key = name == kAttentionProbs;  // columns are keys: one per token of the text
    const std::size_t width = per_key ? seq_len_ : value.cols();
    Activation made;
    made.name = layer < 0 ? std::string(name) : fmt::format("layers.{}.{}", layer, name);
    made.shape = {seq_len_, width};
    if (per_key) made.shape.insert(made.shape.begin(), blocks);
    made.values = Matrix<float>(blocks * seq_len_, width);
    return made;
  }

  std::vector<Activation>& activations_;
  std::size_t seq_len_;
  std::size_t next_ = 0;   // index of the next activation of this pass
  std::size_t first_ = 0;  // the position of its first token
  std::size_t q_len_ = 0;  // the number of its tokens
};

// Throws Error if the attention probabilities of all layers do not fit into the memory: of a long
// text, they are most of the result. longest: the most tokens of a pass.
void check_memory_of_trace(const Plan& plan, std::size_t seq_len, std::size_t longest) {
  std::size_t heads = 0;
  for (const Step& step : plan.steps) {
    if (const auto* one = std::get_if<AttentionStep>(&step.kind)) heads += one->n_heads;
  }
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  const double in_result = count(heads) * count(seq_len) * count(seq_len);
  const double in_a_pass = count(max_heads(plan)) * count(longest) * count(seq_len);
  const double logits = count(seq_len) * count(plan.vocab_size);
  check_text_memory(seq_len, sizeof(float) * (in_result + in_a_pass + 2.0 * logits));
}

}  // namespace

StoredTensor Activation::stored() const {
  const std::span<const float> all(values.data(), values.rows() * values.cols());
  return {name, DType::F32, shape, std::as_bytes(all)};
}

std::vector<Activation> trace(Engine& engine, std::span<const TokenId> ids,
                              std::span<const std::size_t> passes) {
  const std::size_t seq_len = ids.size();
  if (const std::size_t sum = std::reduce(passes.begin(), passes.end()); sum != seq_len) {
    throw Error("trace: expected passes that add up to {} tokens, found {}", seq_len, sum);
  }
  const std::size_t longest = passes.empty() ? 0 : std::ranges::max(passes);
  check_memory_of_trace(engine.plan(), seq_len, longest);
  const auto sequence = engine.make_sequence(seq_len, longest);
  Matrix<float> logits(seq_len, engine.plan().vocab_size);

  std::vector<Activation> activations;
  Collector collector(activations, seq_len);
  const ProbeScope probe(engine,
                         [&](int layer, std::string_view name, MatrixView<const float> value) {
                           if (name != "logits")
                             collector.add(layer, name, value);  // forward returns the logits
                         });
  for (const std::size_t q_len : passes) {
    const std::size_t first = sequence->length();
    collector.begin_pass(first, q_len);
    const Input input{sequence.get(), ids.subspan(first, q_len), q_len};
    engine.forward({&input, 1}, logits.top_rows(q_len));
    collector.add(-1, "logits", logits.top_rows(q_len));
  }
  return activations;
}

void write_trace(const std::filesystem::path& path, std::span<const Activation> activations,
                 const std::function<void()>& check) {
  std::vector<StoredTensor> tensors;
  auto order = nlohmann::json::array();
  for (const Activation& activation : activations) {
    tensors.push_back(activation.stored());
    order.push_back(activation.name);
  }
  write_safetensors(path, tensors, {{"order", json_text(order)}}, check);
}

}  // namespace stagecraft
