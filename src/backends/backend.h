#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/token.h"
#include "tensor/matrix.h"

namespace stagecraft {

// One text on a backend: the state that outlives a pass (keys and values of every position).
class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual std::size_t length() const = 0;    // positions computed
  virtual std::size_t capacity() const = 0;  // positions there is room for

  // Forgets every position from `length` on. Returns the length that it kept: less than asked for
  // where a state cannot be cut there, and the caller feeds the rest again.
  virtual std::size_t truncate(std::size_t length) = 0;

  // Becomes the first `length` positions of `other`, another sequence of this backend, as if it had
  // computed them itself. Returns false, and changes nothing, where that cannot be done.
  virtual bool copy(const Sequence& /*other*/, std::size_t /*length*/) { return false; }

  // Makes room for so many positions, at most capacity(). False where the sequence shares memory
  // (make_sequences) and others hold what is missing: they must be cut first.
  virtual bool reserve(std::size_t /*length*/) { return true; }
};

// The next tokens of one sequence in a pass. Where they stand and what they see follows from the
// tokens of the text's first pass (model/placement.h), which has all of a prompt that cannot be
// cut.
struct Input {
  Sequence* sequence = nullptr;
  std::span<const TokenId> tokens;
  std::size_t n_logits = 0;  // the last so many tokens are scored
  // Of a part of a model that begins with rows (model/plan_split.h): a row per token.
  MatrixView<const float> rows = {};
};

// Called with every named intermediate result of a pass; layer is -1 outside the layers.
using Probe = std::function<void(int layer, std::string_view name, MatrixView<const float>)>;

// What runs the plan of one model: it owns the weights as it needs them, the threads, and the
// memory of a pass. One caller at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  // context: positions. max_rows: the most tokens of one pass that this sequence takes part in; 0:
  // the backend chooses. Memory is allocated here and never in a pass. Throws std::bad_alloc, or
  // Error if the system does not start the threads.
  virtual std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) = 0;

  // The sequences of a server. At most n of them take part in a pass, and there is memory for n
  // that are as long as their context. Where sequences can share memory, there are n_more: these
  // keep earlier texts in what is left, and what several have in common is there once.
  virtual std::vector<std::unique_ptr<Sequence>> make_sequences(std::size_t n,
                                                                std::size_t /*n_more*/,
                                                                std::size_t context,
                                                                std::size_t max_rows) {
    std::vector<std::unique_ptr<Sequence>> sequences;
    for (std::size_t i = 0; i < n; ++i) sequences.push_back(make_sequence(context, max_rows));
    return sequences;
  }

  // Computes the next tokens of some sequences of this backend, each at most once.
  //
  //   logits  [sum of n_logits, vocab_size]  written, in the order of the inputs: for each scored
  //           token the scores of the next one
  //
  // The bits of a sequence's logits do not depend on the other inputs, on how its text is cut into
  // passes, or on the number of threads. Throws Error if a token is no row of the embedding, or if
  // there is no room; all sequences are then as before.
  virtual void forward(std::span<const Input> inputs, MatrixView<float> logits) = 0;

  // As forward, for rows of which only the likeliest next token is wanted: the one with the largest
  // logit, of equal ones the lowest. A backend with its own memory then need not copy the logits.
  //
  //   likeliest  [sum of n_logits]  written: the token, or -1 where the row of logits is written
  //              instead, as by forward: always where a logit is NaN or +infinity, or all are
  //              -infinity
  virtual void forward_greedy(std::span<const Input> inputs, MatrixView<float> logits,
                              std::span<TokenId> likeliest) {
    forward(inputs, logits);
    std::ranges::fill(likeliest, -1);
  }

  virtual std::size_t max_rows() const = 0;  // tokens per pass, over all inputs
  virtual std::size_t n_threads() const = 0;
  virtual void use_threads(std::size_t n) = 0;

  // Sees the intermediate results from now on: which ones, textbook_backend.h says. Throws Error
  // where a backend fuses steps, so that there are none.
  virtual void set_probe(Probe probe) = 0;

  // Applies the final norm and the output head to these rows of the residual stream, as if they
  // were the result of the last layer. At least one row, and at most max_rows().
  //
  //   x       [n, width of the residual stream]  read
  //   logits  [n, vocab_size]                    written
  //
  // Throws Error where set_probe does.
  virtual void score(MatrixView<const float> /*x*/, MatrixView<float> /*logits*/) {
    throw Error("score: expected the textbook backend, found one that fuses steps");
  }
};

}  // namespace stagecraft
