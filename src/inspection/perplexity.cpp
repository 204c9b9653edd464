#include "inspection/perplexity.h"

#include <algorithm>
#include <cmath>
#include <new>

#include "base/error.h"
#include "generation/broken_model.h"
#include "generation/ranking.h"
#include "generation/text_memory.h"

namespace stagecraft {
namespace {

constexpr std::size_t kRowsPerPass = 64;  // rows of logits in memory at a time

std::unique_ptr<Sequence> make_sequence(Engine& engine, std::size_t context, std::size_t rows) try {
  check_memory(engine, context);
  return engine.make_sequence(context, rows);
} catch (const std::bad_alloc&) {
  throw no_memory(engine, context);
}

// ln(sum(exp(logits))) - logits[token]
double surprisal(std::span<const float> logits, TokenId token) {
  check_logits(logits);
  const double result =
      log_sum_exp(logits) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
  if (!std::isfinite(result)) {
    throw Error("perplexity: expected finite logits, found an infinite one");
  }
  return result;
}

}  // namespace

std::vector<double> surprisals(Engine& engine, std::span<const TokenId> ids, const Windows& windows,
                               const std::function<bool(std::size_t scored)>& progress) {
  if (ids.size() < 2) throw Error("text: expected at least 2 tokens, found {}", ids.size());
  if (windows.stride == 0 || windows.stride >= windows.context) {
    throw Error("stride: expected 1 to {} (less than the context), found {}",
                std::max<std::size_t>(windows.context, 1) - 1, windows.stride);
  }
  const std::size_t vocab_size = engine.plan().vocab_size;
  for (const TokenId id : ids) {  // the last id is in no pass, so no pass checks it
    if (id >= 0 && static_cast<std::size_t>(id) < vocab_size) continue;
    throw Error("perplexity: token id: expected 0 to {}, found {}", vocab_size - 1, id);
  }
  if (engine.plan().prompt) {
    throw Error(
        "perplexity: expected a model with a causal mask, found '{}', whose prompt tokens also "
        "attend to later ones",
        engine.plan().model_type);
  }
  const std::size_t context = std::min(windows.context, ids.size());
  const std::size_t rows = std::min(kRowsPerPass, context);
  const auto sequence = make_sequence(engine, context, rows);
  Matrix<float> logits(rows, vocab_size);
  std::vector<double> result;
  result.reserve(ids.size() - 1);

  for (std::size_t begin = 0; result.size() + 1 < ids.size(); begin += windows.stride) {
    sequence->truncate(0);
    // The last token of the window is only predicted, so it need not be computed.
    const std::size_t end = std::min(begin + windows.context, ids.size()) - 1;
    for (std::size_t at = begin; at < end;) {
      const std::size_t n = std::min(rows, end - at);
      // The first token of this pass whose next token is not scored yet.
      const std::size_t first = std::clamp(result.size(), at, at + n);
      const std::size_t scored = at + n - first;
      const Input input{sequence.get(), ids.subspan(at, n), scored};
      engine.forward({&input, 1}, logits.top_rows(scored));
      for (std::size_t i = 0; i < scored; ++i) {
        result.push_back(surprisal(logits.view().row(i), ids[first + i + 1]));
      }
      at += n;
      if (progress && !progress(result.size())) return result;
    }
  }
  return result;
}

}  // namespace stagecraft
