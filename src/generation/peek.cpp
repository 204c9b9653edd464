#include "generation/peek.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "generation/broken_model.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

bool comes_before(const TokenProbability& a, const TokenProbability& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
}

void check_attention(MatrixView<const float> attention, HeadIndex head) {
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

}  // namespace

Peek peek(Engine& engine, std::span<const TokenId> ids, std::size_t shown, const HeadIndex* head) {
  const std::size_t seq_len = ids.size();
  const auto sequence = engine.make_sequence(seq_len, seq_len);
  Peek result;
  result.next = Matrix<float>(shown, engine.plan().vocab_size);
  std::optional<ProbeScope> probe;
  if (head != nullptr) {
    result.attention = Matrix<float>(seq_len, seq_len);
    probe.emplace(engine, [&](int layer, std::string_view name, MatrixView<const float> value) {
      if (layer != static_cast<int>(head->layer) || name != "attn_probs") return;
      const auto rows = value.row_range(head->head * seq_len, seq_len);
      for (std::size_t i = 0; i < seq_len; ++i) {
        std::copy(rows.row(i).begin(), rows.row(i).end(), result.attention.view().row(i).begin());
      }
    });
  }
  const Input input{sequence.get(), ids, shown};
  engine.forward({&input, 1}, result.next.view());
  if (head != nullptr) check_attention(result.attention.view(), *head);
  for (std::size_t i = 0; i < shown; ++i) {
    check_logits(result.next.view().row(i));
    softmax(result.next.view().row(i), result.next.view().row(i));
  }
  return result;
}

std::vector<TokenProbability> likeliest(std::span<const float> probabilities, std::size_t count) {
  std::vector<TokenProbability> all(probabilities.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = {static_cast<TokenId>(i), probabilities[i]};
  }
  count = std::min(count, all.size());
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(all.begin(), end, all.end(), comes_before);
  all.erase(end, all.end());
  return all;
}

std::size_t rank_of(std::span<const float> probabilities, TokenId token) {
  const TokenProbability own{token, probabilities[static_cast<std::size_t>(token)]};
  std::size_t rank = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    rank += comes_before({static_cast<TokenId>(i), probabilities[i]}, own) ? 1 : 0;
  }
  return rank;
}

}  // namespace stagecraft
