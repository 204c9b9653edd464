#pragma once

#include <memory>
#include <string>

namespace stagecraft {

class Tokenizer;
struct TokenGrammar;

// Reads the file of --grammar or of --json-schema. At least one of the two names is empty; if both
// are, returns null. Throws Error naming the file.
std::shared_ptr<const TokenGrammar> read_grammar(const std::string& gbnf_file,
                                                 const std::string& schema_file,
                                                 const Tokenizer& tokenizer);

}  // namespace stagecraft
