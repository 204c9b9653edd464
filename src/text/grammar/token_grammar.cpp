#include "text/grammar/token_grammar.h"

#include <utility>

#include "text/grammar/byte_automaton.h"

namespace stagecraft {

TokenGrammar TokenGrammars::parse(std::string_view gbnf, const std::string& where) {
  auto grammar = std::make_shared<const Grammar>(Grammar::parse(gbnf, where));
  ByteAutomaton(grammar).start();  // so that GuidedText's constructor never fails
  if (!tokens_) tokens_ = std::make_shared<const TokenTrie>(tokenizer_);
  return {std::move(grammar), tokens_};
}

}  // namespace stagecraft
