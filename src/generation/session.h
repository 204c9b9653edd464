#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/engine.h"

namespace stagecraft {

// One text that is being generated: its tokens, the results that the engine has computed for them,
// and the scores of the next token. Nothing is allocated after construction.
class Session {
 public:
  // context: the most tokens that the session can hold. The engine must outlive the session. Throws
  // Error if memory or threads cannot be allocated.
  Session(Engine& engine, std::size_t context);

  // Computes these tokens, which follow the tokens of the session. logits() then scores the token
  // that comes next. (Without tokens, feed does nothing.) A long text takes several passes. Between
  // two passes, feed calls go_on, if it is set; if that returns false, feed stops and returns
  // false: tokens() are the computed ones, and the logits are out of date. Throws Error if the
  // tokens do not fit into the context; then nothing has changed. Throws Error if an id is out of
  // range; then tokens() are the computed ones. (After truncate, these may be fewer than before the
  // call.)
  bool feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on = {});

  // As feed, if the next token is to be the likeliest one. Afterwards likeliest() is this token; or
  // it is -1, and logits() are available as after feed.
  bool feed_greedy(std::span<const TokenId> tokens, const std::function<bool()>& go_on = {});
  TokenId likeliest() const { return likeliest_; }

  // [vocab_size]: the scores after the last token that was fed. Writable, for penalties.
  std::span<float> logits() { return logits_.view().row(0); }

  // Removes every token from `length` on. likeliest() is -1, and the logits are out of date until
  // the next feed of a token. If the state of the model cannot be cut at `length`, the next feed
  // also computes tokens before `length` again.
  void truncate(std::size_t length);

  // All tokens that were fed and not removed.
  std::span<const TokenId> tokens() const { return tokens_; }
  // The number of tokens that need not be computed again; see truncate.
  std::size_t computed() const { return sequence_->length(); }
  std::size_t context() const { return sequence_->capacity(); }
  std::size_t n_threads() const { return engine_.n_threads(); }
  const Engine& engine() const { return engine_; }
  Engine& engine() { return engine_; }

 private:
  bool feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on, bool greedy);

  Engine& engine_;
  std::unique_ptr<Sequence> sequence_;
  Matrix<float> logits_;
  TokenId likeliest_ = -1;
  std::vector<TokenId> tokens_;
};

}  // namespace stagecraft
