#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "text/grammar/grammar.h"
#include "text/grammar/token_trie.h"

namespace stagecraft {

// A grammar and the vocabulary's tokens. Immutable, so several texts can share it.
struct TokenGrammar {
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<const TokenTrie> tokens;
};

// Parses grammars for one vocabulary. The first call builds the tree of tokens. Not thread-safe.
class TokenGrammars {
 public:
  explicit TokenGrammars(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}  // must outlive it
  // Parameters and errors: see Grammar::parse. Throws GrammarError if no text can begin.
  TokenGrammar parse(std::string_view gbnf, const std::string& where);

 private:
  const Tokenizer& tokenizer_;
  std::shared_ptr<const TokenTrie> tokens_;
};

}  // namespace stagecraft
