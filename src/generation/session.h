#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/sequence.h"

namespace stagecraft {

// The memory in bytes that a session with room for `context` tokens comes to use: keys, values and
// what a forward pass writes. Pages that are never reached cost nothing.
double session_bytes(const Config& config, Layers layers, KvType kv_type, std::size_t context);

// One sequence in the making: the model, what it has computed so far, and all the memory and
// threads that computing more will need. Nothing is allocated after it is made.
class Session {
 public:
  // context: the most tokens it can hold. The model must outlive the session. Throws Error if this
  // machine has not the memory for that many, or starts not as many threads.
  Session(const Model& model, std::size_t context, std::size_t n_threads);

  // Computes these tokens after the ones it has. logits() then scores the token that comes next.
  // A long text takes several passes; between two of them go_on, where set, may return false: then
  // what is computed stays, the rest is left, the logits are stale, and feed returns false.
  // Throws Error if they do not fit into the context or an id is out of range.
  bool feed(std::span<const TokenId> tokens, const std::function<bool()>& go_on = {});

  // [vocab_size]: the scores after the last token fed. Writable, for penalties.
  std::span<float> logits() { return logits_.view().row(0); }

  // Forgets every token from `length` on. The logits are stale until the next feed.
  void truncate(std::size_t length);

  std::span<const TokenId> tokens() const { return tokens_; }  // all that were fed
  std::size_t context() const { return sequence_->capacity(); }
  std::size_t n_threads() const { return sequence_->n_threads(); }
  const Model& model() const { return model_; }

  // Sees every intermediate result of the passes to come; see Sequence::set_probe.
  void set_probe(Workspace::Probe probe) { sequence_->set_probe(std::move(probe)); }

 private:
  const Model& model_;
  std::unique_ptr<Sequence> sequence_;
  Matrix<float> logits_;
  std::vector<TokenId> tokens_;
};

}  // namespace stagecraft
