// Goes on with a text: hello MODEL "Once upon a time"
#include <cstdio>
#include <exception>

#include "generation/generate_text.h"

int main(int argc, char** argv) try {
  if (argc != 3) return std::puts("usage: hello MODEL PROMPT"), 2;
  const stagecraft::ModelSource model(argv[1]);  // a folder or a file, parsed once
  auto engine = stagecraft::Engine::open(model);
  const auto tokenizer = stagecraft::Tokenizer::open(model);
  stagecraft::Session session(engine, /*context=*/256);
  stagecraft::Random random(/*seed=*/7);
  stagecraft::TextOptions options;
  options.generation.end_tokens = engine.plan().eos_ids;

  const auto prompt = tokenizer.encode(argv[2], {.add_special = true});
  stagecraft::generate_text(tokenizer, session, prompt, options, random, [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::fflush(stdout) == 0;  // false stops
  });
} catch (const std::exception& error) {
  return std::fprintf(stderr, "hello: %s\n", error.what()), 1;
}
