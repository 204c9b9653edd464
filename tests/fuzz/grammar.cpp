// A grammar in GBNF, and after a byte 0 a text. An Error, or an automaton that says of each prefix
// of the text whether more may follow, in bounded time, and the same after it forgot other states.
#include "base/error.h"
#include "tests/fuzz/fuzz.h"
#include "text/grammar/byte_automaton.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto [gbnf, text] = two_texts(as_text(data, size), '\0');
  try {
    const auto grammar = std::make_shared<const Grammar>(Grammar::parse(gbnf, "input"));
    ByteAutomaton whole(grammar), forgetful(grammar);
    ByteAutomaton::State a = whole.start(), b = forgetful.start();
    for (const char byte : std::string_view(text).substr(0, 200)) {
      whole.renew_budget();
      forgetful.renew_budget();
      require(
          whole.accepts(a) == forgetful.accepts(b) && whole.is_at_end(a) == forgetful.is_at_end(b),
          "what is forgotten does not matter");
      a = whole.next(a, static_cast<std::uint8_t>(byte));
      b = forgetful.keep_only(forgetful.next(b, static_cast<std::uint8_t>(byte)));
      require((a == ByteAutomaton::kDead) == (b == ByteAutomaton::kDead), "both go the same way");
      if (a == ByteAutomaton::kDead) break;
    }
  } catch (const Error&) {
  }
  return 0;
}
