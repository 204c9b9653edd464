// Stands in for read_grammar.cpp in the program of the first story. ./stage runs another program
// for --grammar and --json-schema.
#include "base/error.h"
#include "programs/read_grammar.h"

namespace stagecraft {

std::shared_ptr<const TokenGrammar> read_grammar(const std::string& gbnf_file,
                                                 const std::string& schema_file, const Tokenizer&) {
  if (gbnf_file.empty() && schema_file.empty()) return nullptr;
  throw Error("grammar: this program has no grammars; ./stage build builds one that has");
}

}  // namespace stagecraft
