#include "generation/session.h"

#include <new>

#include "base/error.h"
#include "generation/feed_tokens.h"
#include "generation/text_memory.h"

namespace stagecraft {
namespace {

std::unique_ptr<Sequence> make_sequence(Engine& engine, std::size_t context) {
  check_memory(engine, context);
  return engine.make_sequence(context);
}

}  // namespace

Session::Session(Engine& engine, std::size_t context) try
    : engine_(engine),
      sequence_(make_sequence(engine, context)),
      logits_(1, engine.plan().vocab_size) {
  tokens_.reserve(context);
} catch (const std::bad_alloc&) {
  throw no_memory(engine, context);
}

bool Session::feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on) {
  return feed(tokens, go_on, false);
}

bool Session::feed_greedy(std::span<const TokenId> tokens, const std::function<bool()>& go_on) {
  return feed(tokens, go_on, true);
}

bool Session::feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on,
                   bool greedy) {
  if (tokens.size() > context() - tokens_.size()) {
    throw Error("context: expected at most {} more tokens ({} in all), found {}",
                context() - tokens_.size(), context(), tokens.size());
  }
  if (tokens.empty()) return true;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  try {
    // Begins at the end of the sequence: after truncate, it may be shorter than tokens_.
    const auto rest = std::span<const TokenId>(tokens_).subspan(sequence_->length());
    likeliest_ = -1;
    if (feed_tokens(engine_, *sequence_, rest, logits_.view(), go_on,
                    greedy ? &likeliest_ : nullptr)) {
      return true;
    }
  } catch (...) {
    tokens_.resize(sequence_->length());
    throw;
  }
  tokens_.resize(sequence_->length());
  return false;
}

void Session::truncate(std::size_t length) {
  if (length >= tokens_.size()) return;
  tokens_.resize(length);
  likeliest_ = -1;
  sequence_->truncate(length);
}

}  // namespace stagecraft
