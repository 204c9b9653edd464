#include "inspection/peek.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "generation/broken_model.h"
#include "generation/feed_tokens.h"
#include "generation/text_memory.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

void check_finite(MatrixView<const float> attention, HeadIndex head) {
  for (std::size_t i = 0; i < attention.rows(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      const float weight = attention.row(i)[j];
      if (std::isfinite(weight)) continue;
      throw broken_model(
          fmt::format("the attention weight {} in layer {}, head {}, from position {} to {}",
                      weight, head.layer, head.head, i, j));
    }
  }
}

void check_memory_of_peek(const Engine& engine, std::size_t seq_len, std::size_t shown,
                          bool has_head) {
  const double positions = static_cast<double>(seq_len);
  const double logits = static_cast<double>(shown) * static_cast<double>(engine.plan().vocab_size);
  const double results = logits + (has_head ? positions * positions : 0.0);
  check_text_memory(
      seq_len, session_bytes(engine.plan(), engine.options(), seq_len) + sizeof(float) * results);
}

}  // namespace

Peek peek(Engine& engine, std::span<const TokenId> ids, std::size_t shown, const HeadIndex* head) {
  const std::size_t seq_len = ids.size();
  check_memory_of_peek(engine, seq_len, shown, head != nullptr);
  const auto sequence = engine.make_sequence(seq_len);
  Peek result;
  result.next = Matrix<float>(shown, engine.plan().vocab_size);
  std::optional<ProbeScope> probe;
  if (head != nullptr) {
    const auto* attention = attention_of(engine.plan(), static_cast<int>(head->layer));
    if (attention == nullptr) {
      throw Error("layer {}: expected a layer with attention, found none", head->layer);
    }
    const std::size_t n_heads = attention->n_heads;
    result.attention = Matrix<float>(seq_len, seq_len);
    probe.emplace(engine,
                  [&, n_heads](int layer, std::string_view name, MatrixView<const float> value) {
                    if (layer != static_cast<int>(head->layer) || name != kAttentionProbs) return;
                    // The pass begins at position kv_len - q_len.
                    const std::size_t q_len = value.rows() / n_heads, first = value.cols() - q_len;
                    for (std::size_t i = 0; i < q_len; ++i) {
                      const auto row = value.row(head->head * q_len + i);
                      std::ranges::copy(row, result.attention.view().row(first + i).begin());
                    }
                  });
  }
  feed_tokens(engine, *sequence, ids, result.next.view());
  if (head != nullptr) check_finite(result.attention.view(), *head);
  for (std::size_t i = 0; i < shown; ++i) {
    check_logits(result.next.view().row(i));
    softmax(result.next.view().row(i), result.next.view().row(i));
  }
  return result;
}

}  // namespace stagecraft
