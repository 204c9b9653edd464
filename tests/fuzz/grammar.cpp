// The input is a grammar in GBNF, a zero byte and a text. The grammar must give an Error, or an
// automaton that tells for each prefix of the text, in bounded time, whether more may follow. An
// automaton that forgets all other states must tell the same.
#include "base/error.h"
#include "tests/fuzz/fuzz.h"
#include "text/grammar/byte_automaton.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto [gbnf, text] = two_texts(as_text(data, size), '\0');
  try {
    const auto grammar = std::make_shared<const Grammar>(Grammar::parse(gbnf, "input"));
    constexpr std::size_t kMaxWork = 3000;  // so that ambiguous grammars do not take all the time
    ByteAutomaton whole(grammar, kMaxWork), forgetful(grammar, kMaxWork);
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
