// The likeliest next token of each text, from one pass: next_tokens MODEL TEXT...
#include <algorithm>
#include <cstdio>
#include <exception>

#include "backends/engine.h"
#include "text/tokenizer.h"

int main(int argc, char** argv) try {
  if (argc < 3) return std::puts("usage: next_tokens MODEL TEXT..."), 2;
  const stagecraft::ModelSource model(argv[1]);
  auto engine = stagecraft::Engine::open(model, {.n_threads = 2});
  const auto tokenizer = stagecraft::Tokenizer::open(model);

  std::vector<std::vector<stagecraft::TokenId>> texts;
  std::size_t n_tokens = 0;
  for (int i = 2; i < argc; ++i) {
    texts.push_back(tokenizer.encode(argv[i], {.add_special = true}));
    n_tokens += texts.back().size();
  }
  // One sequence per text. A pass has room for the tokens of all of them.
  std::vector<std::unique_ptr<stagecraft::Sequence>> sequences;
  std::vector<stagecraft::Input> inputs;
  for (const auto& text : texts) {
    sequences.push_back(engine.make_sequence(/*context=*/text.size(), /*max_rows=*/n_tokens));
    inputs.push_back({sequences.back().get(), text, /*n_logits=*/1});
  }
  stagecraft::Matrix<float> logits(texts.size(), engine.plan().vocab_size);
  engine.forward(inputs, logits.view());

  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto row = logits.view().row(i);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    const auto token = static_cast<stagecraft::TokenId>(best);
    std::printf("%s|%s\n", argv[i + 2], tokenizer.bytes_of(token).c_str());
  }
} catch (const std::exception& error) {
  return std::fprintf(stderr, "next_tokens: %s\n", error.what()), 1;
}
