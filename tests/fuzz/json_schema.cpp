// The input is a JSON Schema. It must give an Error, or a grammar whose texts are JSON.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/grammar_texts.h"
#include "text/grammar/json_schema.h"

using namespace stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto beyond = size % 2 == 0 ? BeyondGrammar::Refuse : BeyondGrammar::Ignore;
  try {
    const Json schema(as_text(data, size), "input");
    const std::string gbnf = json_schema_gbnf(schema.root(), beyond);
    ByteAutomaton automaton(std::make_shared<const Grammar>(Grammar::parse(gbnf, "input")));
    std::mt19937 random(static_cast<unsigned>(size));
    for (int i = 0; i < 3; ++i) {
      const auto text = random_text(automaton, random, 300);
      require(!text || nlohmann::json::accept(*text), "what follows a schema is JSON");
    }
  } catch (const Error&) {
  }
  return 0;
}
