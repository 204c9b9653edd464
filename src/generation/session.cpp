#include "generation/session.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {
namespace {

// A prompt goes through the model in pieces of this many tokens: enough that each weight fetched
// from memory serves many rows, few enough that the workspace stays small.
constexpr std::size_t kRowsPerPass = 64;

}  // namespace

Session::Session(const Model& model, std::size_t context, std::size_t n_threads)
    : model_(model),
      cache_(model.config, context),
      workspace_(model.config, std::min(kRowsPerPass, context), context, n_threads),
      logits_(1, model.config.vocab_size) {
  tokens_.reserve(context);
}

void Session::feed(std::span<const TokenId> tokens) {
  if (tokens.size() > context() - tokens_.size()) {
    throw Error("context: expected at most {} more tokens ({} in all), found {}",
                context() - tokens_.size(), context(), tokens.size());
  }
  while (!tokens.empty()) {
    const auto piece = tokens.first(std::min(tokens.size(), workspace_.max_rows));
    tokens = tokens.subspan(piece.size());
    const std::size_t wanted = tokens.empty() ? 1 : 0;  // only the very last scores matter
    forward(model_, piece, cache_, workspace_, logits_.top_rows(wanted));
    tokens_.insert(tokens_.end(), piece.begin(), piece.end());
  }
}

void Session::truncate(std::size_t length) {
  if (length >= tokens_.size()) return;
  cache_.truncate(length);
  tokens_.resize(length);
}

}  // namespace stagecraft
