#include "generation/generate_batch.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "generation/continuation.h"
#include "generation/feed_tokens.h"
#include "generation/text_memory.h"

namespace stagecraft {
namespace {

// One of the texts, and the index of its sequence.
struct Text {
  std::size_t sequence;
  Continuation continuation;
};

using Sequences = std::vector<std::unique_ptr<Sequence>>;

// What n texts need beside their tokens; for large n and context, most of the memory.
struct Memory {
  Memory(Engine& engine, std::size_t context, std::size_t n) try
      : logits(n, engine.plan().vocab_size) {
    sequences = engine.make_sequences(n, 0, context, 0);
  } catch (const std::bad_alloc&) {
    throw no_memory(engine, context, n);
  }

  Sequences sequences;
  Matrix<float> logits;  // [n, vocab_size]
};

// Computes the prompt for the first sequence, and copies it to the others if the backend can. Then
// each row of the logits, [n, vocab_size], scores the first token of a text. Returns false if go_on
// ended it.
bool feed_prompt(Engine& engine, const Sequences& sequences, std::span<const TokenId> prompt,
                 MatrixView<float> logits, const std::function<bool()>& go_on) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (i > 0 && sequences[i]->copy(*sequences[0], prompt.size())) {
      std::ranges::copy(logits.row(0), logits.row(i).begin());
    } else if ((i > 0 && go_on && !go_on()) ||
               !feed_tokens(engine, *sequences[i], prompt, logits.row_range(i, 1), go_on)) {
      return false;
    }
  }
  return true;
}

}  // namespace

void generate_batch(Engine& engine, std::size_t context, std::span<const TokenId> prompt,
                    const GenerationOptions& options, const LogitRules& rules,
                    std::span<Random> randoms,
                    const std::function<bool(std::size_t, TokenId)>& on_token,
                    const std::function<void(std::size_t, StopReason)>& on_done,
                    const std::function<bool()>& go_on) {
  if (prompt.empty()) throw Error("generate: expected a prompt, found none");
  check_memory(engine, context, randoms.size());
  const std::size_t vocab_size = engine.plan().vocab_size;
  Memory memory(engine, context, randoms.size());
  auto& [sequences, logits] = memory;
  std::vector<TokenId> likeliest(randoms.size(), -1);
  std::vector<TokenProbability> scratch(vocab_size);
  std::vector<Text> texts;
  for (std::size_t i = 0; i < randoms.size(); ++i) {
    texts.push_back({i, Continuation({prompt.begin(), prompt.end()}, options, randoms[i], context,
                                     nullptr, rules)});
  }
  if (!feed_prompt(engine, sequences, prompt, logits.view(), go_on)) {
    for (const Text& text : texts) on_done(text.sequence, StopReason::Stopped);
    return;
  }

  std::vector<Input> inputs;
  while (!texts.empty()) {
    std::vector<Text> going;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      auto& [which, continuation] = texts[i];
      auto [token, end] = continuation.next(logits.view().row(i), scratch, likeliest[i]);
      if (token && !on_token(which, *token)) end = StopReason::Stopped;
      if (end) {
        on_done(which, *end);
      } else {
        going.push_back(std::move(texts[i]));
      }
    }
    texts = std::move(going);
    if (texts.empty()) return;
    inputs.clear();
    for (const Text& text : texts) {
      inputs.push_back({sequences[text.sequence].get(), text.continuation.tokens().last(1), 1});
    }
    const MatrixView<float> rows = logits.top_rows(texts.size());
    if (texts.front().continuation.is_greedy()) {  // all texts have the same options
      engine.forward_greedy(inputs, rows, std::span(likeliest).first(texts.size()));
    } else {
      engine.forward(inputs, rows);
    }
  }
}

}  // namespace stagecraft
