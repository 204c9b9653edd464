#include "programs/read_grammar.h"

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/token_grammar.h"

namespace stagecraft {

std::shared_ptr<const TokenGrammar> read_grammar(const std::string& gbnf_file,
                                                 const std::string& schema_file,
                                                 const Tokenizer& tokenizer) {
  const bool is_schema = gbnf_file.empty();
  const std::string& file = is_schema ? schema_file : gbnf_file;
  if (file.empty()) return nullptr;
  std::string rules = read_text_file(file, Grammar::kMaxBytes, Pipes::Read);
  if (is_schema) rules = json_schema_gbnf(Json(rules, printable(file)).root());
  try {
    return std::make_shared<const TokenGrammar>(
        TokenGrammars(tokenizer).parse(rules, printable(file)));
  } catch (const Error& error) {
    if (!is_schema) throw;
    throw Error("{}: {}", printable(file), json_schema_problem(error));
  }
}

}  // namespace stagecraft
