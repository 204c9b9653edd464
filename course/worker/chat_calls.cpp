#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "course/worker/calls.h"
#include "course/worker/forbidden_memory.h"
#include "generation/chat_turn.h"
#include "tests/support/engines.h"
#include "text/chat_template.h"

namespace stagecraft::stages {
namespace {

void call_message_tokens(Arguments& args) {
  const Tokenizer tokenizer = Tokenizer::open(args.text("tokenizer"));
  args.call([&] {
    for (std::size_t n = 1; n <= args.size("messages"); ++n) {
      const std::string name = fmt::format("message {}", n);
      args.record(name,
                  message_tokens(tokenizer, {text_of_bytes(args.integers(name + " role")),
                                             text_of_bytes(args.integers(name + " content"))}));
    }
  });
}

void call_answer_opening(Arguments& args) {
  const Tokenizer tokenizer = Tokenizer::open(args.text("tokenizer"));
  args.call([&] { args.record("opening", answer_opening(tokenizer)); });
}

// Several turns in one session. Counts the rows that the model computes itself, instead of trusting
// the result. If the request says that a turn may be refused, the response says whether it was.
void call_chat_turn(Arguments& args) {
  Engine engine = walker_engine(args.text("model"));
  const Tokenizer tokenizer = Tokenizer::open(args.text("model"));
  Session session(engine, args.size("context"));
  int rows = 0;
  const ProbeScope probe(engine,
                         [&rows](int, std::string_view name, MatrixView<const float> value) {
                           if (name == "embedding") rows += static_cast<int>(value.rows());
                         });
  TextOptions options;
  options.generation.max_tokens = args.size("max_tokens");
  options.generation.sampler.temperature = static_cast<float>(args.scalar("temperature"));
  options.generation.end_tokens = args.integers("end_tokens");
  Random random(args.size("seed"));

  for (std::size_t n = 1; n <= args.size("turns"); ++n) {
    const std::string turn = fmt::format("turn {}", n);
    std::size_t calls_left = n == args.size("stopped_turn") ? args.size("stop_after") : ~0ull;
    const std::vector<TokenId> tokens = args.integers(turn);
    // Reading beyond its end stops the program.
    const std::span conversation(
        static_cast<TokenId*>(before_forbidden_page(tokens.size() * sizeof(TokenId))),
        tokens.size());
    std::ranges::copy(tokens, conversation.begin());
    std::string text;
    rows = 0;
    TextResult result;
    bool refused = false;
    try {
      result =
          chat_turn(tokenizer, session, conversation, options, random, [&](std::string_view piece) {
            text += piece;
            return --calls_left != 0;
          });
    } catch (const Error&) {
      if (!args.has("refusable")) throw;
      refused = true;
    }
    if (args.has("refusable")) args.record(turn + " Error", std::vector<int>{refused});
    args.record(turn + " cache", session.tokens());
    args.record(turn + " computed", std::vector<int>{rows});
    args.record(turn + " prompt_tokens", std::vector{static_cast<int>(result.prompt_tokens)});
    args.record(turn + " reason", std::vector{static_cast<int>(result.reason)});
    args.record(turn + " text", bytes_of(text));
    args.record(turn + " tokens", result.tokens);
  }
}

const Callable kChatCalls{{"message_tokens", call_message_tokens},
                          {"answer_opening", call_answer_opening},
                          {"chat_turn", call_chat_turn}};

}  // namespace

}  // namespace stagecraft::stages
