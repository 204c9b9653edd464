#include "generation/generate_batch.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "generation/repeat_penalty.h"

namespace stagecraft {
namespace {

// One of the texts: all of its tokens, those of the prompt first.
struct Text {
  std::size_t sequence;
  std::vector<TokenId> tokens;
};

using Sequences = std::vector<std::unique_ptr<Sequence>>;

// Feeds the prompt to every sequence, as much of it at a time as a pass takes. logits: [n,
// vocab_size].
void feed_prompt(Engine& engine, const Sequences& sequences, std::span<const TokenId> prompt,
                 MatrixView<float> logits) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (std::size_t at = 0; at < prompt.size();) {
      const auto piece = prompt.subspan(at, std::min(engine.max_rows(), prompt.size() - at));
      at += piece.size();
      const Input input{sequences[i].get(), piece, at == prompt.size() ? 1u : 0u};
      engine.forward({&input, 1}, logits.row_range(i, input.n_logits));
    }
  }
}

}  // namespace

void generate_batch(
    Engine& engine, std::size_t context, std::span<const TokenId> prompt,
    const GenerationOptions& options, std::span<Random> randoms,
    const std::function<void(std::size_t, std::span<const TokenId>, StopReason)>& on_done,
    const std::function<bool()>& go_on) {
  if (prompt.empty()) throw Error("generate: expected a prompt, found none");
  const std::size_t vocab_size = engine.plan().vocab_size;
  Sequences sequences;
  for (std::size_t i = 0; i < randoms.size(); ++i)
    sequences.push_back(engine.make_sequence(context));
  Matrix<float> logits(randoms.size(), vocab_size);
  std::vector<TokenProbability> scratch(vocab_size);
  std::vector<Text> texts;
  for (std::size_t i = 0; i < randoms.size(); ++i) {
    texts.push_back({i, {prompt.begin(), prompt.end()}});
  }
  feed_prompt(engine, sequences, prompt, logits.view());

  // The next token of a text from its row of logits, or why there is none. The same rules in the
  // same order as generate() has them.
  const auto next = [&](Text& text, std::span<float> scores) -> std::optional<StopReason> {
    const auto told = std::span<const TokenId>(text.tokens);
    penalize_repeats(scores, told.last(std::min(told.size(), options.repeat_last_n)),
                     options.repeat_penalty);
    const TokenId token =
        sample(scores, options.sampler, randoms[text.sequence].uniform(), scratch);
    if (std::ranges::find(options.end_tokens, token) != options.end_tokens.end()) {
      return StopReason::EndToken;
    }
    text.tokens.push_back(token);
    if (text.tokens.size() - prompt.size() == options.max_tokens) return StopReason::MaxTokens;
    if (text.tokens.size() > context) return StopReason::ContextFull;
    return std::nullopt;
  };
  const auto done = [&](const Text& text, StopReason reason) {
    on_done(text.sequence, std::span(text.tokens).subspan(prompt.size()), reason);
  };
  if (options.max_tokens == 0) {
    for (const Text& text : texts) done(text, StopReason::MaxTokens);
    return;
  }
  std::vector<Input> inputs;
  while (!texts.empty()) {
    const bool stopped = !go_on();
    std::vector<Text> going;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::optional<StopReason> reason =
          stopped ? StopReason::Stopped : next(texts[i], logits.view().row(i));
      if (reason) {
        done(texts[i], *reason);
      } else {
        going.push_back(std::move(texts[i]));
      }
    }
    texts = std::move(going);
    if (texts.empty()) return;
    inputs.clear();
    for (const Text& text : texts) {
      inputs.push_back({sequences[text.sequence].get(), std::span(text.tokens).last(1), 1});
    }
    engine.forward(inputs, logits.top_rows(texts.size()));
  }
}

}  // namespace stagecraft
