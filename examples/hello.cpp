// Tells a text with a model: hello FOLDER "Once upon a time"
#include <cstdio>

#include "generation/generate_text.h"

int main(int argc, char** argv) try {
  if (argc != 3) throw stagecraft::Error("usage: hello MODEL_FOLDER PROMPT");
  const auto model = stagecraft::Model::open(argv[1]);
  const auto tokenizer = stagecraft::Tokenizer::open(argv[1]);
  stagecraft::Session session(model, 512, 2);  // at most 512 tokens, computed by 2 threads
  stagecraft::Random random(7);

  stagecraft::TextOptions options;
  options.generation.max_tokens = 200;
  options.generation.sampler = {.temperature = 0.8f, .top_k = 40, .top_p = 0.95f};
  options.generation.end_tokens = model.config.eos_ids;

  const auto prompt = tokenizer.encode(argv[2], {.add_special = true});
  const auto show = [](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && !std::fflush(stdout);
  };
  stagecraft::generate_text(tokenizer, session, prompt, options, random, show);
  std::puts("");
} catch (const std::exception& error) {
  std::fprintf(stderr, "hello: %s\n", error.what());
  return 1;
}
